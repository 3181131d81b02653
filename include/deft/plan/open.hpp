// SPDX-License-Identifier: Apache-2.0
// deft/plan/open.hpp: a fused node as the primitive nodes that it stands for.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <span>
#include <vector>

namespace deft::plan {

/// Whether `n` is a fused node.
bool is_fused(const node& n);

/// The primitive nodes of a fused node, one per instruction of its program, the last one being its
/// value; written under the node's own device, control dependencies and place. Hash-consing makes
/// them the very nodes that were written by hand, where they were.
std::vector<output> open(const node_ref& fused);

/// Which fused nodes have to be opened so that `fetches` and `feeds` find what is inside them: from
/// each such node to the primitive node that replaces it.
substitution open_where_needed(std::span<const output> fetches, std::span<const output> feeds);

}  // namespace deft::plan
