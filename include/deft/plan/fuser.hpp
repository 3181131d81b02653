// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuser.hpp: how fuse() finds its regions. Internal.
#pragma once
#include <algorithm>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>
#include <deft/plan/extents.hpp>
#include <deft/plan/fuse.hpp>
#include <deft/plan/region.hpp>
#include <deft/plan/thresholds.hpp>
#include <deft/plan/waits.hpp>
#include <optional>
#include <vector>

namespace deft::ext::plan {

/// Programs have no strings: what compares them is a node of its own.
inline bool reads_strings(const graph_def& g, const node_def& n) {
  return std::ranges::any_of(
      n.inputs, [&](edge_def e) { return g.nodes[e.node].outputs[e.port].type == dtype::string; });
}
inline bool fusible(const graph_def& g, const node_def& n) {
  return n.controls.empty() && (n.op->is(op_traits::elementwise) || expression_in(n)) &&
         !reads_strings(g, n);
}
/// How many operations it adds to a program.
inline std::size_t operations_of(const node_def& n) {
  const program* p = expression_in(n);
  return p ? p->code.size() : 1;
}
/// Whether it computes with integers, of which an operation may refuse some: a divisor of zero.
inline bool may_refuse(const node_def& n) {
  const program* p = expression_in(n);
  return p ? std::ranges::any_of(p->code, [](const instruction& c) { return is_integer(c.type); })
           : is_integer(n.outputs[0].type);
}

/// Goes through the nodes from the last to the first, and makes each that is not part of a region
/// yet the root of one.
class fuser {
 public:
  fuser(graph_def& g, std::span<edge_def> fetches, const can_run_test& can_run);

  std::vector<unfused_edge> run();

 private:
  bool has_kernel(std::uint32_t root) const { return has_kernel(root, node(root).outputs[0].type); }
  bool has_kernel(std::uint32_t root, dtype t) const {
    const op_def& made =
        is_joining_update(root) ? record_of<op::fused_update> : record_of<op::fused>;
    return !can_run_ || can_run_(node(root).device, made, t);
  }
  /// Whether what `root` becomes, which its device can run, can compute `n`.
  bool has_kernel(std::uint32_t root, const node_def& n) const {
    const dtype t = n.outputs[0].type;
    return t == node(root).outputs[0].type || has_kernel(root, t);
  }

  /// An update that a program can express: it adds or subtracts, or assigns an elementwise value
  /// that is computed from the variable, which therefore has one to update in place.
  bool is_joining_update(std::uint32_t u) const;
  bool keeps_extents(const node_def& assignment) const;
  bool needs_old_value(std::uint32_t value, const node_def& update) const;
  /// Whether the variables of two updates always have the same extents.
  bool same_extents(std::uint32_t update, std::uint32_t other) const;
  /// What `n` cannot do without in a region: the value of an assignment.
  std::optional<std::uint32_t> value_of(std::uint32_t n) const {
    if (node(n).op->role != op_role::assign) return {};
    return node(n).inputs[0].node;
  }

  bool is_awaited(std::uint32_t n) const { return !awaiting_[n].empty(); }
  const node_def& node(std::uint32_t n) const { return graph_.nodes[n]; }
  const dims& shape_of(edge_def e) const { return node(e.node).outputs[e.port].shape; }

  bool is_ending_fold(const node_def& n) const {
    return is_fold(n) && n.controls.empty() && n.inputs[0].port == 0 &&
           shape_of_fold(graph_, n).has_value();
  }
  /// How many axes a fold of rows has; 0 if it is none.
  int row_axes_of(const node_def& n) const {
    const auto shape = shape_of_fold(graph_, n);
    return shape && shape->leaves == extent_class::row ? shape->row_axes : 0;
  }
  /// How many axes a row of `g` has if `shape` has one element for each; 0 if not.
  int axes_of_row(const group& g, const dims& shape) const;

  group gather(std::uint32_t root) {
    group g = gather_inputs(root);
    if (is_large(g.extents) && !g.updates) join_folds(g);
    return g;
  }
  /// What the root needs.
  group gather_inputs(std::uint32_t root);
  /// `rows`: and nodes with one element for each row.
  group gather_inputs(std::uint32_t root, bool rows);
  /// The root by itself.
  group alone(std::uint32_t root) const;

  void put(group& g, std::uint32_t n) const {
    g.members.insert(n);
    g.operations += operations_with_value(n);
    if (const auto value = value_of(n)) g.members.insert(*value);
  }
  std::size_t operations_with_value(std::uint32_t n) const {
    const auto value = value_of(n);
    return operations_of(node(value ? *value : n));
  }

  /// Folds of what the region reads or computes: they need no pass of their own.
  void join_folds(group& g);
  /// Takes the region of a fold in, or says why not; nothing where both have nothing in common.
  const char* join(group& g, std::uint32_t fold);
  /// Whether a fold's value is there for the elements of its region.
  bool can_be_used(const group& g, std::uint32_t fold) const {
    return class_of(graph_, g, fold) == extent_class::row && keeps_dims(node(fold));
  }
  /// Whether one needs, for each element, what the other needs or gives.
  bool sets_intersect(const group& a, const group& b) const;
  bool has_extents_of(const group& g, std::uint32_t n) const {
    return !node(n).outputs.empty() && extents_.same(n, g.like);
  }
  /// Whether others than the group's members need it.
  bool is_shared(const group& g, std::uint32_t n) const {
    return fetched_[n] || !std::ranges::all_of(users_[n], [&](auto u) { return g.has(u); });
  }

  /// Takes `n` in, or says why not; nothing of what cannot be part of any region.
  const char* fusion_blocker(group& g, std::uint32_t n, bool rows);
  /// Takes in `n`, which several updates need, with all of them and what they compute of it.
  bool join_updates(group& g, std::uint32_t n) const;
  bool is_large(const dims& d) const {
    return !d.is_static() || d.elements() >= thresholds::large_region;
  }
  bool variable_among(const node_numbers& updates, const node_def& x) const {
    return std::ranges::any_of(
        updates, [&](auto u) { return resource_of(node(u)).key == resource_of(x).key; });
  }

  /// Finds a position between the inputs of the group and its consumers while all other nodes keep
  /// theirs: then there is no cycle.
  bool find_position(group& g) const;
  /// Values of rows that are not made of a fold within are better computed by themselves.
  void drop_rows_without_folds(group& g);
  /// Whether whatever the group takes has one element for each element, row or column, or one in
  /// all, in every run.
  bool all_are_rows(const group& g) const;
  /// Whoever needs a value finds it where it is now; nodes in their new order.
  void finish();

  graph_def& graph_;
  std::span<edge_def> fetches_;
  const can_run_test& can_run_;
  const extent_symbols extents_;
  const wait_sets waits_;
  std::vector<node_numbers> users_, awaiting_;  ///< the latter by control dependencies
  std::vector<bool> fetched_, taken_;
  std::vector<double> positions_;
  moved_values moved_;
  update_counts updates_;
  std::vector<unfused_edge> apart_;
};

}  // namespace deft::ext::plan
