// SPDX-License-Identifier: Apache-2.0
// deft/plan/shapes.hpp: values that only shapes need.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <span>

namespace deft::plan {

/// Extents are read where they first come up, not where they are needed, so that nothing waits for
/// a value of which only the shape counts; what broadcasts by itself takes a value as it is, not
/// repeated; and a reduction keeps its axes if they would be put back. Nodes are placed.
void follow_shapes(graph_def& g, std::span<edge_def> fetches);

}  // namespace deft::plan
