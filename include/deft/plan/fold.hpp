// SPDX-License-Identifier: Apache-2.0
// deft/plan/fold.hpp: constant folding: computes constants once, when the plan is made.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <functional>

namespace deft::ext::plan {

/// Runs one node on the host. Returns its outputs; none if there is no kernel for it.
using evaluator =
    std::function<std::vector<any_array>(const node_def& n, std::span<const any_array> inputs)>;

/// Replaces pure nodes whose inputs are all constants by constants, which the kernels of those
/// nodes compute. A node stays if its result is larger than 64 KB and larger than its inputs.
/// Constants stop waiting: their users wait for what they waited for.
void fold(graph_def& g, std::span<edge_def> fetches, const evaluator& evaluate);

}  // namespace deft::ext::plan
