// SPDX-License-Identifier: Apache-2.0
// deft/plan/order.hpp: orders nodes: values for others first, reads before updates.
#pragma once
#include <deft/graph/function.hpp>
#include <span>
#include <vector>

namespace deft::ext::plan {

/// Whether `n` itself changes the value of a resource.
inline bool is_update(const node_def& n) {
  return n.op->role == op_role::assign || n.op->role == op_role::update;
}
/// Whether `n`, or a function that it calls, does.
inline bool has_update(const node_def& n) { return any_node(n, is_update); }

/// Whether `n`, or a function that it calls, draws other random numbers in each step.
bool draws(const node_def& n);

/// Sorts the nodes, stably, by the number of transfers between tasks on the longest path to them,
/// then by that of copies between devices since: values that others wait for are computed first,
/// what waits for others comes last, and values for one task can be sent together. Of those that
/// need no other value, such as a variable's, those that begin a step come first
/// (op_traits::begins), then small ones: they leave in one frame with the first large one.
void order_transfers(graph_def& g, std::span<edge_def> fetches);

/// Adds control dependencies so that every plain read of a variable runs before the updates of that
/// variable in the same run, and sorts the nodes accordingly. Where possible an update comes after
/// all users of the old value, so that it can be done in place.
/// Throws invalid_argument if two updates of one variable are unordered.
void order_variables(graph_def& g, std::span<edge_def> fetches);

}  // namespace deft::ext::plan
