// SPDX-License-Identifier: Apache-2.0
// deft/plan/shapes.ipp: extents followed to where they come from.
#pragma once
#include <algorithm>
#include <deft/op/base/reduction.hpp>
#include <deft/op/size_of.hpp>
#include <deft/plan/extents.hpp>
#include <deft/plan/rewrite.hpp>
#include <deft/plan/shapes.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace deft::ext::plan {
namespace {

/// The operand of an elementwise node that has its extents in every run; none that is repeated, as
/// the node may repeat it itself.
std::optional<std::uint32_t> operand_like(const graph_def& g, const extent_symbols& extents,
                                          std::uint32_t n) {
  if (!is_elementwise(g.nodes[n])) return {};
  for (auto e : g.nodes[n].inputs)
    if (e.port == 0 && !g.nodes[e.node].op->is(op_traits::repeats) && extents.same(e.node, n))
      return e.node;
  return {};
}

/// The number of elements along one axis is the same wherever that extent is found, that along
/// several in the operands of elementwise operations: then their results may need no memory.
void read_at_origin(graph_def& g, const extent_symbols& extents, node_def& n) {
  const edge_def of = n.inputs[0];
  const dims axes = decode<op::size_of>(n.attributes).axes;
  if (of.port != 0) return;
  if (axes.size() != 1) {
    for (auto at = operand_like(g, extents, of.node); at; at = operand_like(g, extents, *at))
      if (g.nodes[*at].device == n.device) n.inputs[0] = {*at, 0};
    return;
  }
  const auto axis = static_cast<int>(axes[0]);
  if (g.nodes[of.node].outputs[0].shape[axis] != dyn) return;
  const auto [node, d] = extents.origin(of.node, axis);
  if (node == of.node || g.nodes[node].device != n.device) return;
  n.inputs[0] = {node, 0};
  n.attributes = encode(op::size_of{{d}});
}

/// Whether each extent of `e` is 1 or that of node `n`'s result, in every run.
bool fits(const graph_def& g, const extent_symbols& extents, edge_def e, std::uint32_t n) {
  const dims &from = g.nodes[e.node].outputs[e.port].shape, &to = g.nodes[n].outputs[0].shape;
  for (int d = 0; d < from.rank(); ++d) {
    const int at = d + to.rank() - from.rank();
    if (from[d] == 1) continue;
    if (from[d] != to[at]) return false;
    if (from[d] == dyn && (e.port != 0 || extents.origin(e.node, d) != extents.origin(n, at)))
      return false;
  }
  return true;
}

/// An elementwise operation repeats its operands itself, if another one has the extents of the
/// result.
void take_unrepeated(const graph_def& g, const extent_symbols& extents, std::uint32_t number,
                     node_def& n) {
  const dims& result = n.outputs[0].shape;
  for (auto& e : n.inputs) {
    const node_def& from = g.nodes[e.node];
    if (!from.op->is(op_traits::repeats) || !from.controls.empty() || from.device != n.device ||
        !fits(g, extents, from.inputs[0], number) || !fits(g, extents, e, number))
      continue;
    const bool kept = std::ranges::any_of(n.inputs, [&](edge_def other) {
      return other != e && !g.nodes[other.node].op->is(op_traits::repeats) &&
             (result.is_static() ? g.nodes[other.node].outputs[other.port].shape == result
                                 : other.port == 0 && extents.same(other.node, number));
    });
    if (kept) e = from.inputs[0];
  }
}

/// A reduction whose axes come back with an extent of 1, for nothing but that, keeps them: then a
/// region may use it again.
void keep_axes(const graph_def& g, const std::vector<int>& uses, node_def& n) {
  if (n.op->role != op_role::alias || n.inputs.size() != 1 || !n.controls.empty()) return;
  const node_def& fold = g.nodes[n.inputs[0].node];
  if (fold.op->folds == fold_kind::none || !fold.controls.empty() || fold.device != n.device ||
      uses[n.inputs[0].node] > 1)
    return;
  auto r = decode<op::reduction>(fold.attributes);
  r.keepdims = true;
  const edge_def of = fold.inputs[0];
  const dims kept = r.shape(g.nodes[of.node].outputs[of.port].shape);
  // Of two unknown extents one might have become the other.
  if (std::count(kept.begin(), kept.end(), dyn) > 1 ||
      n.outputs[0] != tensor_type{kept, fold.outputs[0].type})
    return;
  n.op = fold.op;
  n.attributes = encode(r);
  n.inputs = {of};
}

/// What the value repeats, if its extents are known.
std::optional<edge_def> repeated_value(const graph_def& g, edge_def e) {
  const node_def& from = g.nodes[e.node];
  if (!from.op->is(op_traits::repeats) || !from.controls.empty()) return {};
  const edge_def of = from.inputs[0];
  if (!g.nodes[of.node].outputs[of.port].shape.is_static()) return {};
  return of;
}

/// The extents of an elementwise node whose operands repeat what they are made of only afterwards;
/// nullopt if one of them repeats nothing, or two repeat values of different extents. `small`:
/// those of the nodes before.
std::optional<dims> extents_before_repeating(const graph_def& g,
                                             const std::vector<std::optional<dims>>& small,
                                             const node_def& n) {
  std::optional<dims> common;
  for (auto e : n.inputs) {
    if (g.nodes[e.node].outputs[e.port].shape.rank() == 0) continue;
    std::optional<dims> its = small[e.node];
    if (const auto of = repeated_value(g, e)) its = g.nodes[of->node].outputs[of->port].shape;
    if (!its) return {};
    if (!common || common->rank() == 0)
      common = its;
    else if (its->rank() != 0 && *its != *common)
      return {};
  }
  return common;
}

}  // namespace

void repeat_last(graph_def& g, std::span<edge_def> fetches) {
  const auto nodes = static_cast<std::uint32_t>(g.nodes.size());
  std::vector<std::optional<dims>> small(nodes);  // of values computed from repeated ones alone
  std::vector<bool> whole(nodes);                 // needed as it is
  bool some = false;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const node_def& n = g.nodes[i];
    if (!is_elementwise(n) || n.outputs[0].shape.rank() == 0) continue;
    small[i] = extents_before_repeating(g, small, n);
    some = some || small[i];
  }
  if (!some) return;
  const extent_symbols extents(g);
  for (const auto& f : fetches) whole[f.node] = true;
  const auto is_whole = [&](edge_def e) { return small[e.node] && whole[e.node]; };
  for (bool again = true; std::exchange(again, false);) {
    for (std::uint32_t i = nodes; i-- > 0;) {
      const node_def& n = g.nodes[i];
      const auto has_extents = [&](edge_def e) {
        return !small[e.node] && !g.nodes[e.node].op->is(op_traits::repeats) && e.port == 0 &&
               extents.same(e.node, i);
      };
      const bool repeats_itself =
          is_elementwise(n) && (small[i] ? !whole[i] : std::ranges::any_of(n.inputs, has_extents));
      for (auto e : n.inputs)
        if (small[e.node] && !(repeats_itself && fits(g, extents, e, i))) whole[e.node] = true;
    }
    // What is computed from one of them is whole, and then all that it is computed from.
    for (std::uint32_t i = 0; i < nodes; ++i)
      if (small[i] && !whole[i] && std::ranges::any_of(g.nodes[i].inputs, is_whole))
        whole[i] = again = true;
  }
  for (std::uint32_t i = 0; i < nodes; ++i) {
    if (!small[i] || whole[i]) continue;
    node_def& n = g.nodes[i];
    for (auto& e : n.inputs)
      if (const auto of = repeated_value(g, e)) e = *of;
    n.outputs = std::vector{tensor_type{*small[i], n.outputs[0].type}};
  }
  prune(g, fetches);
}

void follow_shapes(graph_def& g, std::span<edge_def> fetches) {
  const extent_symbols extents(g);
  std::vector<int> uses(g.nodes.size());
  for (const auto& f : fetches) ++uses[f.node];
  for (const auto& n : g.nodes)
    for (auto e : n.inputs) ++uses[e.node];
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
    node_def& n = g.nodes[i];
    if (n.op == &record_of<op::size_of>) read_at_origin(g, extents, n);
    if (is_elementwise(n)) take_unrepeated(g, extents, i, n);
    keep_axes(g, uses, n);
  }
  prune(g, fetches);
}

}  // namespace deft::ext::plan
