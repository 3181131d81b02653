// SPDX-License-Identifier: Apache-2.0
// deft/plan/rewrite.hpp: what passes that change a graph share.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <functional>
#include <span>
#include <vector>

namespace deft::plan {

using node_numbers = std::vector<std::uint32_t>;

/// Whether a device has a kernel for an operation that a pass would make, with values of a dtype.
using can_run_test = std::function<bool(placement, const op_def&, dtype)>;

/// Moves nodes to `order` (their numbers before; missing ones are dropped) and renumbers what
/// refers to them, `fetches` included.
void permute(graph_def& g, const node_numbers& order, std::span<edge_def> fetches);

/// Drops what `fetches` do not need, and renumbers.
void prune(graph_def& g, std::span<edge_def> fetches);

/// That `late` should come after `early` if the order can be chosen.
struct preference {
  std::uint32_t early = 0, late = 0;
};
/// Puts nodes into an order in which each comes after its inputs and controls, as close to the
/// present one as that allows; a node with unmet preferences comes once nothing else can.
/// Throws internal if there is a cycle.
void sort(graph_def& g, std::span<edge_def> fetches, std::span<const preference> prefer = {});

}  // namespace deft::plan
