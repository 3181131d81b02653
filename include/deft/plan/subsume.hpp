// SPDX-License-Identifier: Apache-2.0
// deft/plan/subsume.hpp: values that another node computes as well are taken from it.
#pragma once
#include <deft/plan/rewrite.hpp>
#include <span>

namespace deft::ext::plan {

/// Removes nodes whose values other nodes yield in the same pass over memory (op_def::subsumes),
/// such as a loss where its gradient is computed. Both must be on one device, and the node that
/// stays must not depend on the other, or wait for other events. Nodes must be placed.
void subsume(graph_def& g, std::span<edge_def> fetches);

}  // namespace deft::ext::plan
