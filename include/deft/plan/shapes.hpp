// SPDX-License-Identifier: Apache-2.0
// deft/plan/shapes.hpp: removes dependencies on values of which only the shape is used.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <span>

namespace deft::ext::plan {

/// Takes extents from the first node that has them, so that no node waits for a value of which it
/// needs only the shape. Operations that broadcast take the operand itself in place of a repeated
/// one, and a reduction keeps its axes if they would be added again. Nodes must be placed.
void follow_shapes(graph_def& g, std::span<edge_def> fetches);

/// Computes values that repeat a smaller one from that one, where elementwise operations on whole
/// tensors repeat it themselves: so begin the gradients of sums and means.
void repeat_last(graph_def& g, std::span<edge_def> fetches);

}  // namespace deft::ext::plan
