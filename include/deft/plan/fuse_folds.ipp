// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse_folds.ipp: reductions of expressions over operands that are all broadcast.
#pragma once
#include <algorithm>
#include <deft/op/plan/fused_fold.hpp>
#include <deft/plan/fuse_folds.hpp>
#include <deft/plan/fuser.hpp>

namespace deft::ext::plan {
namespace {

/// Whether `shape`, which is broadcast to `to`, has fewer elements. Extents of `to` that are not
/// known count as larger than 1.
bool is_broadcast(const dims& shape, const dims& to) {
  for (int d = 0; d < to.rank(); ++d) {
    const int own = d - (to.rank() - shape.rank());
    if ((own < 0 || shape[own] == 1) && to[d] != 1) return true;
  }
  return false;
}

/// What a node computes, as an expression.
op::fused expression_of(const graph_def& g, const node_def& n) {
  if (expression_in(n)) return decode<op::fused>(n.attributes);
  program_builder made;
  std::vector<program_builder::value> args;
  for (auto e : n.inputs) args.push_back(made.input(g.nodes[e.node].outputs[e.port].type));
  made.apply(*n.op, n.outputs[0].type, args);
  return {made.finish(), {}};
}

}  // namespace

void fuse_folds(graph_def& g, std::span<edge_def> fetches, const can_run_test& can_run) {
  std::vector<int> users(g.nodes.size());
  for (const auto& n : g.nodes) {
    for (auto e : n.inputs) ++users[e.node];
    for (auto c : n.controls) ++users[c];
  }
  for (const auto& f : fetches) ++users[f.node];

  const op_def& made = record_of<op::fused_fold>;
  std::optional<wait_sets> waits;
  bool changed = false;
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
    node_def& fold = g.nodes[i];
    if (!is_fold(fold) || fold.inputs[0].port != 0) continue;
    const std::uint32_t from = fold.inputs[0].node;
    const node_def& x = g.nodes[from];
    const dims& shape = x.outputs[0].shape;
    const auto axes = decode<op::reduction>(fold.attributes);
    if (users[from] != 1 || x.device != fold.device || !fusible(g, x) || axes.axes.empty() ||
        axes.axes[0] == 0 || (shape.is_static() && shape.elements() < thresholds::large_region))
      continue;
    if (!std::ranges::all_of(x.inputs, [&](edge_def e) {
          return is_broadcast(g.nodes[e.node].outputs[e.port].shape, shape);
        }))
      continue;
    if (can_run && !can_run(fold.device, made, fold.outputs[0].type)) continue;
    if (!waits) waits.emplace(g);
    if (waits->of(from) != waits->of(i)) continue;
    const op::fused e = expression_of(g, x);
    fold.attributes = encode(op::fused_fold{e.program, std::string(fold.op->name), axes.axes,
                                            axes.keepdims, e.immediates});
    fold.op = &made;
    fold.inputs = x.inputs;
    changed = true;
  }
  if (changed) prune(g, fetches);
}

}  // namespace deft::ext::plan
