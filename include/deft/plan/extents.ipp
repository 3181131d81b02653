// SPDX-License-Identifier: Apache-2.0
// deft/plan/extents.ipp: how symbols go from operands to results.
#pragma once
#include <algorithm>
#include <deft/op/base/reduction.hpp>
#include <deft/plan/extents.hpp>

namespace deft::ext::plan {
namespace {

/// The axis of the operand that axis `d` of a reduction's result was.
int axis_before(const op::reduction& r, int d) {
  if (r.keepdims) return d;
  for (int before = 0;; ++before)
    if (!r.axes.contains(before) && d-- == 0) return before;
}

}  // namespace

extent_symbols::extent_symbols(const graph_def& g) : graph_(g), of_(g.nodes.size()) {
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
    const node_def& n = g.nodes[i];
    if (n.outputs.empty()) continue;
    const dims& shape = n.outputs[0].shape;
    const bool alike = is_elementwise(n);
    auto rank_of = [&](edge_def e) { return g.nodes[e.node].outputs[e.port].shape.rank(); };
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape[d] != dyn) continue;
      std::uint64_t& symbol = of_[i][static_cast<std::size_t>(d)];
      const std::uint64_t fresh = std::uint64_t{i} * max_rank + static_cast<std::uint64_t>(d) + 1;
      auto join = [&](edge_def e, int axis) {
        const dims& from = g.nodes[e.node].outputs[e.port].shape;
        if (axis < 0 || from[axis] == 1) return;
        const std::uint64_t s =
            e.port == 0 && from[axis] == dyn ? of_[e.node][static_cast<std::size_t>(axis)] : fresh;
        symbol = symbol == 0 || symbol == s ? s : fresh;
      };
      if (alike)
        for (auto e : n.inputs) join(e, d - shape.rank() + rank_of(e));
      else if (n.op->folds != fold_kind::none)
        join(n.inputs[0], axis_before(decode<op::reduction>(n.attributes), d));
      else if (n.op->is(op_traits::repeats))  // to the extents of the last input, if there are two
        join(n.inputs.back(), d - shape.rank() + rank_of(n.inputs.back()));
      else if (n.op->is(op_traits::keeps_axes))
        join(n.inputs[0], d);
      else if (n.op->role == op_role::alias && std::ranges::count(shape, dyn) == 1 &&
               g.nodes[n.inputs[0].node].outputs[n.inputs[0].port].shape == shape)
        join(n.inputs[0], d);
      if (symbol == 0) symbol = fresh;
    }
  }
}

bool extent_symbols::same(std::uint32_t a, std::uint32_t b) const {
  return graph_.nodes[a].outputs[0].shape == graph_.nodes[b].outputs[0].shape && of_[a] == of_[b];
}

}  // namespace deft::ext::plan
