// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse_folds.hpp: joins reductions with what they reduce where that is no region.
#pragma once
#include <deft/plan/rewrite.hpp>

namespace deft::ext::plan {

/// Joins a reduction and the expression that only it needs, where every operand of the expression
/// is broadcast: no device then writes down more elements than there are. After fuse(), whose
/// regions have rows and columns. The first axis is not among the reduced ones, so that the
/// reduction goes part by part. Where `can_run` accepts fused_fold.
void fuse_folds(graph_def& g, std::span<edge_def> fetches, const can_run_test& can_run);

}  // namespace deft::ext::plan
