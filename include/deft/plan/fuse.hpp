// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse.hpp: primitive elementwise nodes joined into fused ones.
#pragma once
#include <deft/graph/graph_def.hpp>

namespace deft::plan {

/// Joins elementwise nodes of one device and shape where nobody else needs what is between them.
/// What the user wrote as one expression stays as it is: it has a compiled kernel.
void fuse(graph_def& g, std::span<edge_def> fetches);

}  // namespace deft::plan
