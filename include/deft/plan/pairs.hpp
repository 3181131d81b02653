// SPDX-License-Identifier: Apache-2.0
// deft/plan/pairs.hpp: an operation and what comes after it, as one.
#pragma once
#include <deft/plan/rewrite.hpp>
#include <span>

namespace deft::plan {

/// Makes one node of an operation and the one that is there to come after it (see op_def), where
/// both are on one device that has `together`, and nothing between them needs the first one's
/// values: a loss and its gradient. Nodes are placed.
void join_pairs(graph_def& g, std::span<edge_def> fetches, const can_run_test& can_run = {});

}  // namespace deft::plan
