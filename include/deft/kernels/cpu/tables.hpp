// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/tables.hpp: the tables of kernels that the processor's device joins.
#pragma once
#include <deft/kernels/kernel.hpp>

namespace deft::ext::cpu {

/// Those of kernels/spec: of cpu.ipp, and of cpu_linear.ipp.
kernel_table main_kernels();
kernel_table linear_kernels();
kernel_table elementwise_kernels();

/// The kernel of an elementwise operation alone, from its row.
kernel_ptr make_elementwise(const node_def& n, std::span<const tensor_type> in);

/// The same of strings, for equal and not_equal.
kernel_ptr make_string_equality(const node_def& n);

/// The kernel of a reduction of an expression.
kernel_ptr make_fused_fold(const node_def& n, std::span<const tensor_type> in);

/// The kernel of a region with folds.
kernel_ptr make_region(const program& p, std::span<const std::int64_t> immediates);
/// Of one whose folds leave a value for every row.
kernel_ptr make_row_region(const program& p, std::span<const std::int64_t> immediates);

}  // namespace deft::ext::cpu
