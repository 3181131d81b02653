// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse.hpp: joins elementwise nodes and reductions into fused nodes.
#pragma once
#include <deft/plan/rewrite.hpp>
#include <string>
#include <vector>

namespace deft::ext::plan {

/// A node that was not fused with its consumer, and the reason.
struct unfused_edge {
  node_name node, user;
  std::string reason;
};

/// Joins nodes of one device into regions. A region holds elementwise nodes of one shape, which are
/// primitive operations or whole expressions; reductions over all axes or the first ones, which end
/// the region; and reductions over the last axes, whose results may be used within it. Values of a
/// large region that other nodes need become further outputs of the region, and so do reductions of
/// values that it reads or computes. An expression stays a piece of its region, as it has a
/// compiled kernel. An update of a variable takes in the nodes that only it needs, and the updates
/// of other variables of the same extents that it needs, and runs as one pass; so does an
/// assignment of a value that is computed from the variable's old one. Updates of integers are left
/// out: a zero divisor could stop the pass half way. If `can_run` is given, nodes are fused only on
/// devices for which it accepts the fused operation. Returns the nodes that were kept apart, with
/// the reasons.
std::vector<unfused_edge> fuse(graph_def& g, std::span<edge_def> fetches,
                               const can_run_test& can_run = {});

}  // namespace deft::ext::plan
