// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse_rules.ipp: which nodes may be part of a region.
#pragma once
#include <deft/plan/fuser.hpp>

namespace deft::ext::plan {

bool fuser::is_joining_update(std::uint32_t u) const {
  const node_def& n = node(u);
  if (n.op->role == op_role::update) return n.op->joins;
  if (n.op->role != op_role::assign || resource_of(n).only_first) return false;
  const auto [value, port] = n.inputs[0];
  const node_def& x = node(value);
  return port == 0 && fusible(graph_, x) && !may_refuse(x) && x.device == n.device &&
         x.outputs[0] == n.outputs[0] && users_[value].size() == 1 && !fetched_[value] &&
         !is_awaited(value) && keeps_extents(n) && needs_old_value(value, n);
}

bool fuser::keeps_extents(const node_def& assignment) const {
  const resource_ref r = resource_of(assignment);
  return r.holds.shape.is_static() || !r.extents_of.empty();
}

bool fuser::same_extents(std::uint32_t update, std::uint32_t other) const {
  const resource_ref a = resource_of(node(update)), b = resource_of(node(other));
  if (!(a.holds.shape == b.holds.shape)) return false;
  const auto of = [](const resource_ref& r) {
    return std::pair(r.key.container, r.extents_of.empty() ? r.key.name : r.extents_of);
  };
  return a.holds.shape.is_static() || of(a) == of(b);
}

bool fuser::needs_old_value(std::uint32_t value, const node_def& update) const {
  constexpr std::size_t farthest = 64;
  node_numbers found{value};
  for (std::size_t i = 0; i < found.size() && found.size() < farthest; ++i)
    for (auto e : node(found[i]).inputs) {
      if (is_old_value(node(e.node), update, updates_)) return true;
      if (std::ranges::find(found, e.node) == found.end()) found.push_back(e.node);
    }
  return false;
}

int fuser::axes_of_row(const group& g, const dims& shape) const {
  const int rank = g.extents.rank();
  if (shape.rank() != rank) return 0;
  auto has_rows_of = [&](int axes) {
    for (int d = 0; d < rank; ++d)
      if (shape[d] != (d < rank - axes ? g.extents[d] : 1)) return false;
    return true;
  };
  if (g.row_axes > 0) return has_rows_of(g.row_axes) ? g.row_axes : 0;
  int axes = 1;
  while (axes < rank && !has_rows_of(axes)) ++axes;
  return axes < rank ? axes : 0;
}

const char* fuser::fusion_blocker(group& g, std::uint32_t n, bool rows) {
  const node_def& x = node(n);
  const bool update = g.updates, updates = update && is_joining_update(n);
  const bool fold = is_fold(x);
  if (!fold && !updates && !x.op->is(op_traits::elementwise) && !expression_in(x)) return "";
  if (taken_[n]) return "it is part of another region";
  if (!x.controls.empty()) return "it has control dependencies";
  if (reads_strings(graph_, x)) return "it compares strings";
  if (x.device != node(g.root).device) return "it is on another device";
  if (!has_kernel(g.root, x)) return "the device has no fused kernel for its dtype";
  int axes = 0;
  if (fold) {
    axes = row_axes_of(x);
    if (update || !rows || g.folds_all || axes == 0)
      return "its sum, mean or maximum is known only after all its elements";
    if (!keeps_dims(x)) return "it has no axes of extent 1 in the place of those it folds";
    if (!extents_.same(x.inputs[0].node, g.like) || x.inputs[0].port != 0)
      return "it folds another shape";
  } else if (!(x.outputs[0].shape == g.extents)) {
    axes = axes_of_row(g, x.outputs[0].shape);
    if (axes == 0 || !rows || update || g.folds_all) return "it has another shape";
  }
  if (axes > 0 && g.row_axes > 0 && axes != g.row_axes) return "its rows have other axes";
  if (g.operations + operations_with_value(n) > max_fused_operations)
    return "the region has as many operations as one may have";
  // What is refused is so before the variable is touched.
  if (update && !updates && may_refuse(x))
    return "integer division can fail, and an update must not fail half way";
  const bool shared = is_shared(g, n);
  if (is_awaited(n)) return "others wait for it";
  auto take = [&](group& into) {
    put(into, n);
    if (axes > 0) into.row_axes = axes;
  };
  if (!shared && !updates) return take(g), nullptr;
  if (update && !updates)
    return join_updates(g, n) ? nullptr : "others than updates of its shape need its value";
  if (!updates && !is_large(g.extents)) return "others need its value, which is small";
  if (g.outputs.size() + 2 > program::most_outputs) return "the region has too many results";
  if (axes == 0 && (updates ? !same_extents(n, g.root) : !extents_.same(n, g.like)))
    return "its extents may differ";
  if (updates && variable_among(updates_of(g), x)) return "the region updates its variable";
  group larger = g;
  take(larger);
  larger.outputs.push_back(n);
  if (waits_.of(n) != waits_.of(g.root))
    return "its consumer waits for other events outside the step";
  if (!find_position(larger)) return "others need its value before";
  g = std::move(larger);
  return nullptr;
}

bool fuser::all_are_rows(const group& g) const {
  const int rank = g.extents.rank(), outer = rank - g.row_axes;
  if (rank <= 2) return true;  // nothing else can be broadcast to it
  for (auto m : g.members)
    for (auto e : node(m).inputs) {
      if (g.has(e.node)) continue;
      if (e.port == 0 && extents_.same(e.node, g.like)) continue;
      const dims& shape = shape_of(e);
      bool rows = true, columns = true, rows_one = true, columns_one = true;
      for (int d = 0; d < rank; ++d) {
        const int own = d - (rank - shape.rank());
        const std::int64_t extent = own < 0 ? 1 : shape[own];
        const bool same = extent == g.extents[d] && extent != dyn;
        (d < outer ? rows : columns) &= same;
        (d < outer ? rows_one : columns_one) &= extent == 1;
      }
      if (!((rows || rows_one) && (columns || columns_one))) return false;
    }
  return true;
}

}  // namespace deft::ext::plan
