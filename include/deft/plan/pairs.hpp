// SPDX-License-Identifier: Apache-2.0
// deft/plan/pairs.hpp: joins two operations that have a common kernel.
#pragma once
#include <deft/plan/rewrite.hpp>
#include <span>

namespace deft::ext::plan {

/// Joins an operation and the operation that is declared to follow it (see op_def), such as a loss
/// and its gradient, into one node. Both must be on one device that has a kernel for `together`,
/// and no node between them may need the values of the first. Nodes must be placed.
void join_pairs(graph_def& g, std::span<edge_def> fetches, const can_run_test& can_run = {});

}  // namespace deft::ext::plan
