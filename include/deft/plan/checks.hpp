// SPDX-License-Identifier: Apache-2.0
// deft/plan/checks.hpp: checks of extents do not stand between operations that could be fused.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <span>

namespace deft::ext::plan {

/// Checks the extents of an elementwise result where they come from instead, if that has the same
/// ones in every run: the operations between know them too, and are fused as if nobody checked.
void raise_checks(graph_def& g, std::span<edge_def> fetches);

}  // namespace deft::ext::plan
