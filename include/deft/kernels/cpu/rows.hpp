// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/rows.hpp: the compiled rows that portable programs and single operations use.
#pragma once
#include <deft/graph/op_def.hpp>
#include <deft/kernels/compiled_row_registry.hpp>

namespace deft::ext::cpu {

/// The row of one operation of the catalog whose operands (the last of them, if they differ) have
/// dtype `operand`; without a function if there is none.
compiled_row find_row(const op_def& op, dtype operand, dtype result);

/// The row of two at once: `second`, one of whose operands, number `position`, is `first`. Its
/// operands are those of both, in the order in which they are written.
compiled_row find_pair(const op_def& first, const op_def& second, int position, dtype type);

/// The fold of one operation on operands of `type`, for those that sums are made of most: as
/// fused_registration has it.
compiled_row find_row_fold(const op_def& op, dtype type, fold_kind fold);
/// Of two operations, as find_pair has them; `position` may be `both_positions`.
compiled_row find_pair_fold(const op_def& first, const op_def& second, int position, dtype type,
                            fold_kind fold);
constexpr int both_positions = 2;  ///< `first` is both operands of `second`

/// Estimated nanoseconds that `op` takes for an element in cache.
double row_cost(const op_def& op, dtype type);

}  // namespace deft::ext::cpu
