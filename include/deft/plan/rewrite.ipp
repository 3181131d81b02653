// SPDX-License-Identifier: Apache-2.0
// deft/plan/rewrite.ipp: nodes dropped and renumbered.
#pragma once
#include <algorithm>
#include <deft/plan/rewrite.hpp>
#include <functional>
#include <queue>

namespace deft::ext::plan {

void permute(graph_def& g, const std::vector<std::uint32_t>& order, std::span<edge_def> fetches) {
  constexpr auto gone = ~std::uint32_t{0};
  std::vector<std::uint32_t> number(g.nodes.size(), gone);
  for (std::uint32_t i = 0; i < order.size(); ++i) number[order[i]] = i;
  std::vector<node_def> nodes;
  nodes.reserve(order.size());
  for (auto old : order) {
    node_def& n = nodes.emplace_back(std::move(g.nodes[old]));
    for (auto& e : n.inputs) e.node = number[e.node];
    for (auto& c : n.controls) c = number[c];
  }
  g.nodes = std::move(nodes);
  for (auto& f : fetches) f.node = number[f.node];
}

void prune(graph_def& g, std::span<edge_def> fetches) {
  std::vector<bool> live(g.nodes.size());
  for (const auto& f : fetches) live[f.node] = true;
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (auto e : g.nodes[i].inputs) live[e.node] = true;
    for (auto c : g.nodes[i].controls) live[c] = true;
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i)
    if (live[i]) order.push_back(i);
  if (order.size() < g.nodes.size()) permute(g, order, fetches);
}

void sort(graph_def& g, std::span<edge_def> fetches, std::span<const preference> prefer) {
  using numbers = std::vector<std::uint32_t>;
  const std::size_t count = g.nodes.size();
  std::vector<numbers> users(count), held(prefer.empty() ? 0 : count);
  numbers waits(count), holds(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    auto need = [&](std::uint32_t n) { users[n].push_back(i), ++waits[i]; };
    for (auto e : g.nodes[i].inputs) need(e.node);
    for (auto c : g.nodes[i].controls) need(c);
  }
  for (auto p : prefer) held[p.early].push_back(p.late), ++holds[p.late];
  std::priority_queue<std::uint32_t, numbers, std::greater<>> ready, deferred;
  auto offer = [&](std::uint32_t n) { (holds[n] ? deferred : ready).push(n); };
  for (std::uint32_t i = 0; i < count; ++i)
    if (!waits[i]) offer(i);
  numbers order;
  std::vector<bool> placed(count);
  while (!ready.empty() || !deferred.empty()) {
    auto& from = ready.empty() ? deferred : ready;
    const auto n = from.top();
    from.pop();
    if (placed[n]) continue;  // offered again once nothing held it any more
    placed[n] = true;
    order.push_back(n);
    for (auto u : users[n])
      if (--waits[u] == 0) offer(u);
    if (!prefer.empty())
      for (auto h : held[n])
        if (--holds[h] == 0 && waits[h] == 0) ready.push(h);
  }
  if (order.size() < count) fail(errc::internal, "[plan] the graph has a cycle");
  if (!std::ranges::is_sorted(order)) permute(g, order, fetches);
}

}  // namespace deft::ext::plan
