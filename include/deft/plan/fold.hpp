// SPDX-License-Identifier: Apache-2.0
// deft/plan/fold.hpp: constants computed once, when the plan is made.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <functional>

namespace deft::plan {

/// Runs one node on the host: its outputs, or nothing if there is no kernel.
using evaluator =
    std::function<std::vector<any_array>(const node_def& n, std::span<const any_array> inputs)>;

/// Replaces pure nodes whose inputs are all constants by constants, with the kernels that would
/// have run them. What grows beyond 64 KB and beyond its inputs stays.
void fold(graph_def& g, std::span<edge_def> fetches, const evaluator& evaluate);

}  // namespace deft::plan
