// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse.hpp: elementwise nodes and reductions joined into fused ones.
#pragma once
#include <deft/plan/rewrite.hpp>
#include <string>
#include <vector>

namespace deft::plan {

/// Why a node was not joined with the one that uses it.
struct kept_apart {
  node_name node, user;
  std::string reason;
};

/// Joins nodes of one device into regions: elementwise ones, primitive or whole expressions, of one
/// shape; reductions of such values over all axes or the first ones, which end a region; and
/// reductions over the last axes, whose results may be used again in it. What others need of a
/// large region is a further output of it, and so are reductions of what it reads or computes. An
/// expression stays a piece of what it becomes part of, as it has a compiled kernel. An update of a
/// variable takes in what only it needs, and updates of other variables of its extents that it
/// needs, and is one pass: but for integers, of which a divisor may be refused half way. So does an
/// assignment of a value that is computed from the variable's old one.
/// Devices that `can_run` denies the operation that would be made are left alone; by default there
/// are none. Says what was kept apart and why.
std::vector<kept_apart> fuse(graph_def& g, std::span<edge_def> fetches,
                             const can_run_test& can_run = {});

}  // namespace deft::plan
