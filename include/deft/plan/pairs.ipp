// SPDX-License-Identifier: Apache-2.0
// deft/plan/pairs.ipp: pairs of nodes found and joined.
#pragma once
#include <algorithm>
#include <deft/plan/pairs.hpp>
#include <deft/plan/rewrite.hpp>
#include <deft/plan/waits.hpp>
#include <optional>

namespace deft::ext::plan {
namespace {

class pair_joiner {
 public:
  pair_joiner(graph_def& g, const can_run_test& can_run)
      : graph_(g), can_run_(can_run), waits_(g), awaited_(g.nodes.size()), moved_(g.nodes.size()) {
    for (const auto& n : g.nodes)
      for (auto c : n.controls) awaited_[c] = true;
  }

  bool run() {
    bool joined = false;
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].op->after)
        if (const auto first = first_of(i)) joined = true, join(*first, i);
    return joined;
  }
  /// Where a value is now.
  edge_def follow(edge_def e) const {
    if (moved_[e.node])
      e = {moved_[e.node]->node, e.port == run_only ? run_only : moved_[e.node]->port + e.port};
    return e;
  }

 private:
  bool is_free(std::uint32_t n) const { return graph_.nodes[n].controls.empty() && !moved_[n]; }

  std::optional<std::uint32_t> first_of(std::uint32_t second) const {
    const node_def& n = graph_.nodes[second];
    if (!is_free(second)) return std::nullopt;
    for (auto e : n.inputs) {
      const node_def& from = graph_.nodes[e.node];
      // What waits for the second waits for the first as well.
      if (from.op != n.op->after || !is_free(e.node) || awaited_[e.node] ||
          from.device != n.device || waits_.of(e.node) != waits_.of(second) ||
          !std::ranges::equal(from.inputs, std::span(n.inputs).first(from.inputs.size())) ||
          (can_run_ && !can_run_(n.device, *n.op->together, from.outputs[0].type)))
        continue;
      const auto others = others_of(e.node, n);
      if (std::ranges::none_of(others, [&](edge_def o) { return needs(o.node, e.node); }))
        return e.node;
    }
    return std::nullopt;
  }
  /// The inputs of the second node other than the inputs and outputs of the first.
  std::vector<edge_def> others_of(std::uint32_t first, const node_def& second) const {
    std::vector<edge_def> others;
    for (auto e : std::span(second.inputs).subspan(graph_.nodes[first].inputs.size())) {
      if (e.node == first) continue;
      const node_def& from = graph_.nodes[e.node];
      const bool repeated =
          from.op->is(op_traits::repeats) && from.controls.empty() && from.device == second.device;
      if (repeated && rank_of(from.inputs[0]) == 0) e = from.inputs[0];
      others.push_back(e);
    }
    return others;
  }
  int rank_of(edge_def e) const { return graph_.nodes[e.node].outputs[e.port].shape.rank(); }

  bool needs(std::uint32_t from, std::uint32_t to) const {
    node_numbers stack{from};
    std::vector<bool> seen(graph_.nodes.size());
    while (!stack.empty()) {
      const std::uint32_t n = stack.back();
      stack.pop_back();
      if (n == to) return true;
      auto visit = [&](edge_def e) {
        e = follow(e);
        if (!seen[e.node]) seen[e.node] = true, stack.push_back(e.node);
      };
      for (auto e : graph_.nodes[n].inputs) visit(e);
      for (auto c : graph_.nodes[n].controls) visit({c, 0});
    }
    return false;
  }

  void join(std::uint32_t first, std::uint32_t second) {
    const node_def& a = graph_.nodes[first];
    node_def& b = graph_.nodes[second];
    std::vector<edge_def> inputs = a.inputs;
    const auto others = others_of(first, b);
    inputs.insert(inputs.end(), others.begin(), others.end());
    std::vector<tensor_type> outputs(a.outputs.begin(), a.outputs.end());
    outputs.insert(outputs.end(), b.outputs.begin(), b.outputs.end());
    b.op = b.op->together;
    b.inputs = std::move(inputs);
    b.outputs = std::move(outputs);
    b.name = a.name;
    b.place = a.place;
    b.requested = a.requested;
    moved_[first] = edge_def{second, 0};
    moved_[second] = edge_def{second, static_cast<std::uint32_t>(a.outputs.size())};
  }

  graph_def& graph_;
  const can_run_test& can_run_;
  const wait_sets waits_;
  std::vector<bool> awaited_;  ///< by control dependencies
  std::vector<std::optional<edge_def>> moved_;
};

}  // namespace

void join_pairs(graph_def& g, std::span<edge_def> fetches, const can_run_test& can_run) {
  pair_joiner pairs(g, can_run);
  if (!pairs.run()) return;
  for (auto& n : g.nodes)
    for (auto& e : n.inputs) e = pairs.follow(e);
  for (auto& f : fetches) f = pairs.follow(f);
  sort(g, fetches);
  prune(g, fetches);
}

}  // namespace deft::ext::plan
