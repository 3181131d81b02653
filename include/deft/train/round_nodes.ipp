// SPDX-License-Identifier: Apache-2.0
// deft/train/round_nodes.ipp: nodes at the barriers of a graph's sync_replicas, for savers and
// chiefs.
#pragma once
#include <deft/expr/lower.hpp>
#include <deft/train/replicas/operations.hpp>
#include <vector>

namespace deft {
namespace {

/// A node for each barrier of the graph, on its task.
template <class Op>
std::vector<ext::node_ref> at_rounds(const graph& g) {
  std::vector<ext::node_ref> nodes;
  for (const ext::output& state : g.collected("sync_replicas/state", "")) {
    Op o;
    static_cast<op::replica_round&>(o) = ext::decode<op::describe_round>(state.node->attributes);
    nodes.push_back(ext::add_node(g, o, {.device = state.node->device()}));
  }
  return nodes;
}

}  // namespace
}  // namespace deft
