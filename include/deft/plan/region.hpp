// SPDX-License-Identifier: Apache-2.0
// deft/plan/region.hpp: nodes that become one, and the node that they become.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <deft/plan/rewrite.hpp>
#include <map>
#include <optional>
#include <set>

namespace deft::plan {

/// The program of a node that an expression became; null for other nodes. Its literals may come
/// with each run, behind its inputs.
const program* expression_in(const node_def& n);
/// A literal in the making: a constant of rank 0.
bool is_literal(const node_def& n);

inline bool is_fold(const node_def& n) { return n.op->folds != fold_kind::none; }
bool keeps_dims(const node_def& fold);
/// What a fold leaves, in a region of what it folds, and how many axes rows have there.
struct fold_shape {
  extent_class leaves;
  int row_axes;
};
/// Nothing unless it folds all axes, or the last ones, whose extents are known, or the first ones
/// where those of the others are.
std::optional<fold_shape> shape_of_fold(const graph_def& g, const node_def& n);

/// Nodes that become one.
struct group {
  std::uint32_t root = 0;
  std::set<std::uint32_t> members;
  node_numbers outputs;  ///< what others need, and updates, but for the root
  bool updates = false;  ///< the root and the outputs update variables
  std::size_t operations = 0;
  dims extents;            ///< of what is computed for each element
  std::uint32_t like = 0;  ///< a node that has them
  int row_axes = 0;        ///< of the folds within
  bool folds_all = false;  ///< there are folds over all axes
  double position = 0;     ///< in the order of nodes

  bool has(std::uint32_t n) const { return members.contains(n); }
};

/// Where the value of member `m` differs.
extent_class class_of(const graph_def& g, const group& of, std::uint32_t m);
/// The members that update variables: the root, and others.
node_numbers updates_of(const group& of);
/// The resource that an update changes.
resource_ref resource_of(const node_def& update);
/// How many nodes of the graph update each resource.
using update_counts = std::map<resource_key, int>;
/// Whether `n` is the variable's value before `update`, which then may read it in place.
bool is_old_value(const node_def& n, const node_def& update, const update_counts& updates);

/// Where values are found that a region gives, by the nodes that gave them.
using moved_values = std::vector<std::optional<edge_def>>;

/// Makes the root of `of` the node that all its members become.
void write_region(graph_def& g, const group& of, const update_counts& updates, moved_values& moved);

}  // namespace deft::plan
