// SPDX-License-Identifier: Apache-2.0
// deft/plan/order.hpp: the order of nodes: what other tasks wait for first, reads before updates.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <span>
#include <vector>

namespace deft::plan {

/// The resources that a node touches.
inline std::vector<resource_ref> resources_of(const node_def& n) {
  return n.op->resources ? n.op->resources(n.attributes) : std::vector<resource_ref>();
}
/// It gives a resource another value.
inline bool is_update(const node_def& n) {
  return n.op->role == op_role::assign || n.op->role == op_role::update;
}

/// Puts nodes by how many times a value crosses between tasks before it reaches them, and else as
/// they are: what others wait for is made first, and values that go to one task can travel
/// together.
void order_transfers(graph_def& g, std::span<edge_def> fetches);

/// Makes every plain read come before the updates of its variable in this run, by control
/// dependencies, and puts the nodes into an order that keeps them, in which an update comes as late
/// as what uses the old value asks for: then it can be done in place.
/// Throws invalid_argument if two updates of one variable are not ordered.
void order_variables(graph_def& g, std::span<edge_def> fetches);

}  // namespace deft::plan
