// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse_folds.hpp: joins reductions with what they reduce where that is no region.
#pragma once
#include <deft/plan/rewrite.hpp>

namespace deft::ext::plan {

/// Joins a reduction and the expression that only it needs, where every operand of the expression
/// is broadcast: its result, which has more elements than any of them, is then never in memory as a
/// whole. For what fuse(), which runs before, leaves: operands that are neither rows nor columns of
/// a region. The first axis must not be a reduced one, as the reduction goes through it part by
/// part. Only on devices for which `can_run` accepts fused_fold.
void fuse_folds(graph_def& g, std::span<edge_def> fetches, const can_run_test& can_run);

}  // namespace deft::ext::plan
