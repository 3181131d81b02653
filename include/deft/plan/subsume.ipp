// SPDX-License-Identifier: Apache-2.0
// deft/plan/subsume.ipp: nodes found whose values others yield, and their users redirected.
#pragma once
#include <algorithm>
#include <deft/plan/rewrite.hpp>
#include <deft/plan/subsume.hpp>
#include <deft/plan/waits.hpp>

namespace deft::ext::plan {
namespace {

bool depends(const graph_def& g, std::uint32_t node, std::uint32_t on) {
  node_numbers stack{node};
  std::vector<bool> seen(g.nodes.size());
  while (!stack.empty()) {
    const node_def& n = g.nodes[stack.back()];
    stack.pop_back();
    auto visit = [&](std::uint32_t from) {
      if (!seen[from]) seen[from] = true, stack.push_back(from);
    };
    for (auto e : n.inputs) visit(e.node);
    for (auto c : n.controls) visit(c);
  }
  return seen[on];
}

/// Of the inputs from number `first` on: one value in place of one repeated.
void give_once(const graph_def& g, node_def& n, std::size_t first) {
  for (auto& e : std::span(n.inputs).subspan(first)) {
    const node_def& from = g.nodes[e.node];
    if (!from.op->is(op_traits::repeats) || !from.controls.empty() || from.device != n.device)
      continue;
    const edge_def of = from.inputs[0];
    if (g.nodes[of.node].outputs[of.port].shape.rank() == 0) e = of;
  }
}

void redirect(edge_def& e, std::uint32_t from, std::uint32_t to) {
  if (e.node == from) e = {to, e.port == run_only ? run_only : 1};
}

}  // namespace

void subsume(graph_def& g, std::span<edge_def> fetches) {
  const auto count = static_cast<std::uint32_t>(g.nodes.size());
  if (std::ranges::none_of(g.nodes, [](const node_def& n) { return n.op->subsumes; })) return;
  const wait_sets waits(g);
  std::vector<bool> fixed(count);  // nodes that others wait for, and those that are gone
  for (const auto& n : g.nodes)
    for (auto c : n.controls) fixed[c] = true;

  for (std::uint32_t i = 0; i < count; ++i) {
    node_def& n = g.nodes[i];
    if (!n.op->subsumes) continue;
    const auto first = static_cast<std::size_t>(n.op->subsumes->min_inputs);
    give_once(g, n, first);
    if (!n.controls.empty()) continue;
    for (std::uint32_t j = 0; j < count; ++j) {
      const node_def& other = g.nodes[j];
      if (other.op != n.op->subsumes || fixed[j] || !other.controls.empty() ||
          other.device != n.device || waits.of(i) != waits.of(j) ||
          !std::ranges::equal(other.inputs, std::span(n.inputs).first(first)) || depends(g, i, j))
        continue;
      for (auto& user : g.nodes)
        for (auto& e : user.inputs) redirect(e, j, i);
      for (auto& f : fetches) redirect(f, j, i);
      n.name = other.name, n.location = other.location, n.requested = other.requested;
      fixed[j] = true;
      break;
    }
  }
  sort(g, fetches);
  prune(g, fetches);
}

}  // namespace deft::ext::plan
