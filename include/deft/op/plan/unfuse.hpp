// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/unfuse.hpp: replaces a fused node by the primitive nodes that it stands for.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <span>
#include <vector>

namespace deft::ext::plan {

/// Whether `n` is a fused node.
bool is_fused(const node& n);

/// The primitive nodes of a fused node, one per instruction of its program; the last is its value.
/// They get the device, control dependencies and source location of the fused node. If the graph
/// already has an equal node, hash-consing returns that one.
std::vector<output> unfuse(const node_ref& fused);

/// The fused nodes that must be opened because a fetch or a feed names a node inside them. Maps
/// each of them to the primitive node that replaces it.
substitution unfuse_where_needed(std::span<const output> fetches, std::span<const output> feeds);

}  // namespace deft::ext::plan
