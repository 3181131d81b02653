// SPDX-License-Identifier: Apache-2.0
// deft/plan/variables.ipp: reads before updates, and the renumbering that passes share.
#pragma once
#include <algorithm>
#include <deft/op/assign.hpp>
#include <deft/op/variable.hpp>
#include <deft/plan/variables.hpp>
#include <map>
#include <queue>

namespace deft::plan {

std::optional<variable_key> variable_of(const node_def& n) {
  if (n.op != &record_of<op::variable> && n.op != &record_of<op::read_variable> && !is_update(n))
    return std::nullopt;
  return variable_key(std::get<std::string>(n.attributes[0]),
                      std::get<std::string>(n.attributes[1]));
}

bool is_update(const node_def& n) {
  return n.op == &record_of<op::assign> || n.op == &record_of<op::assign_add> ||
         n.op == &record_of<op::assign_sub>;
}

namespace {

/// Moves nodes to `order` (old numbers; missing ones are dropped) and renumbers what refers to
/// them.
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

/// Whether `to` is needed by `from`, directly or not. Nodes are in order.
bool reaches(const graph_def& g, std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> stack{from};
  std::vector<bool> seen(g.nodes.size());
  while (!stack.empty()) {
    auto n = stack.back();
    stack.pop_back();
    if (n == to) return true;
    auto visit = [&](std::uint32_t i) {
      if (i >= to && !seen[i]) seen[i] = true, stack.push_back(i);
    };
    for (auto e : g.nodes[n].inputs) visit(e.node);
    for (auto c : g.nodes[n].controls) visit(c);
  }
  return false;
}

}  // namespace

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

void sort(graph_def& g, std::span<edge_def> fetches) {
  std::vector<std::vector<std::uint32_t>> users(g.nodes.size());
  std::vector<std::uint32_t> waits(g.nodes.size());
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
    auto need = [&](std::uint32_t n) { users[n].push_back(i), ++waits[i]; };
    for (auto e : g.nodes[i].inputs) need(e.node);
    for (auto c : g.nodes[i].controls) need(c);
  }
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i)
    if (!waits[i]) ready.push(i);
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    auto n = ready.top();
    ready.pop();
    order.push_back(n);
    for (auto u : users[n])
      if (--waits[u] == 0) ready.push(u);
  }
  if (order.size() < g.nodes.size()) fail(errc::internal, "[plan] the nodes depend on each other");
  if (!std::ranges::is_sorted(order)) permute(g, order, fetches);
}

void order_variables(graph_def& g, std::span<edge_def> fetches) {
  struct touched {
    std::vector<std::uint32_t> reads, updates;
  };
  std::map<variable_key, touched> variables;
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i)
    if (auto v = variable_of(g.nodes[i])) {
      auto& t = variables[*v];
      (is_update(g.nodes[i]) ? t.updates : t.reads).push_back(i);
    }
  for (const auto& [name, t] : variables)
    for (std::size_t u = 1; u < t.updates.size(); ++u)
      if (!reaches(g, t.updates[u], t.updates[u - 1]))
        throw error(
            errc::invalid_argument,
            str("[", g.nodes[t.updates[u]].op->name, "] variable \"", name.second,
                "\" is updated twice in one run, here and by \"", g.nodes[t.updates[u - 1]].name,
                "\" ", where_of(g.nodes[t.updates[u - 1]].place),
                ", in no order: use control_dependencies"),
            g.nodes[t.updates[u]].name, g.nodes[t.updates[u]].place);
  bool added = false;
  for (const auto& [name, t] : variables)
    for (auto r : t.reads)
      if (g.nodes[r].op == &record_of<op::variable>)
        for (auto u : t.updates)
          if (!std::ranges::count(g.nodes[u].controls, r)) {
            g.nodes[u].controls.push_back(r);
            added = true;
          }
  if (added) sort(g, fetches);
}

}  // namespace deft::plan
