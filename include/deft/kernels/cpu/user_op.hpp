// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/user_op.hpp: kernels of the program's own operations, as the processor finds
// them.
#pragma once
#include <deft/kernels/user_op.hpp>

namespace deft::ext::cpu {

/// As find_row, of operations that are not in the catalog.
compiled_row find_user_row(const op_def& op, dtype operand, dtype result);
/// The table of all that were added before it is first asked for.
kernel_table user_kernels();

}  // namespace deft::ext::cpu
