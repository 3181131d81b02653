// SPDX-License-Identifier: Apache-2.0
// deft/plan/region.hpp: a group of nodes, and the fused node that replaces it.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <deft/plan/rewrite.hpp>
#include <map>
#include <optional>
#include <set>

namespace deft::ext::plan {

/// The program of a node made from an expression; null for other nodes. Its literals may be fed in
/// each run, after its inputs.
const program* expression_in(const node_def& n);
/// Whether `n` is a constant of rank 0, which becomes a literal of the program.
bool is_literal(const node_def& n);

/// Whether `n` can be a fold of a region. Those of narrow types are not: devices have no kernels of
/// their own of these.
inline bool is_fold(const node_def& n) {
  return n.op->folds != fold_kind::none && !is_narrow(n.outputs[0].type);
}
bool keeps_dims(const node_def& fold);
/// The extents of a fold's result relative to its region, and the number of axes of a row there.
struct fold_shape {
  extent_class leaves;
  int row_axes;
};
/// Empty unless `n` folds all axes; the last axes, of known extents; or the first axes, where the
/// extents of the others are known.
std::optional<fold_shape> shape_of_fold(const graph_def& g, const node_def& n);

/// Nodes that become one node.
struct group {
  std::uint32_t root = 0;
  std::set<std::uint32_t> members;
  node_numbers outputs;  ///< values that other nodes need, and updates; without the root
  bool updates = false;  ///< the root and the outputs update variables
  std::size_t operations = 0;
  dims extents;            ///< of the values computed for each element
  std::uint32_t like = 0;  ///< a node with these extents
  int row_axes = 0;        ///< of the folds in it
  bool folds_all = false;  ///< there are folds over all axes
  double position = 0;     ///< in the order of nodes

  bool has(std::uint32_t n) const { return members.contains(n); }
};

/// How the extents of member `m` relate to those of the region.
extent_class class_of(const graph_def& g, const group& of, std::uint32_t m);
/// The members that update variables, the root included if it does.
node_numbers updates_of(const group& of);
/// The resource that an update changes.
resource_ref resource_of(const node_def& update);
/// How many nodes of the graph update each resource.
using update_counts = std::map<resource_key, int>;
/// Whether `n` is the variable's value before `update`, which then may read it in place.
bool is_old_value(const node_def& n, const node_def& update, const update_counts& updates);

/// The new producers of values that a region has taken over, by their old node.
using moved_values = std::vector<std::optional<edge_def>>;

/// Turns the root of `of` into the node that replaces all members.
void write_region(graph_def& g, const group& of, const update_counts& updates, moved_values& moved);

}  // namespace deft::ext::plan
