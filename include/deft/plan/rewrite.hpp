// SPDX-License-Identifier: Apache-2.0
// deft/plan/rewrite.hpp: helpers of the passes that change a graph.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <functional>
#include <span>
#include <vector>

namespace deft::ext::plan {

using node_numbers = std::vector<std::uint32_t>;

/// Whether a device has a kernel for an operation that a pass would make, with values of a dtype.
using can_run_test = std::function<bool(placement, const op_def&, dtype)>;

/// Sorts the nodes by `order`, a list of their present numbers, and renumbers all references to
/// them, those of `fetches` included. Nodes that `order` lacks are removed.
void permute(graph_def& g, const node_numbers& order, std::span<edge_def> fetches);

/// Removes the nodes that `fetches` do not need, and renumbers the others.
void prune(graph_def& g, std::span<edge_def> fetches);

/// `late` should come after `early` where dependencies allow it.
struct preference {
  std::uint32_t early = 0, late = 0;
};
/// Sorts the nodes so that each comes after its inputs and controls, and keeps the present order as
/// far as possible. A node with unmet preferences comes when no other node can come next.
/// Throws internal if there is a cycle.
void sort(graph_def& g, std::span<edge_def> fetches, std::span<const preference> prefer = {});

}  // namespace deft::ext::plan
