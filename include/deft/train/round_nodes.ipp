// SPDX-License-Identifier: Apache-2.0
// deft/train/round_nodes.ipp: nodes at the barriers of a graph's sync_replicas, for savers and
// chiefs.
#pragma once
#include <deft/graph/graph.hpp>
#include <deft/op/replicas.hpp>
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
    ext::node_request r;
    r.def = &ext::record_of<Op>;
    r.attributes = ext::encode(o);
    r.device = state.node->device();
    nodes.push_back(graph(g).add(std::move(r)));
  }
  return nodes;
}

}  // namespace
}  // namespace deft
