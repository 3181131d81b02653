// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/tables.hpp: the tables of kernels that the processor's device joins; each stands
// at the end of the file that holds the kernels.
#pragma once
#include <deft/kernels/kernel.hpp>

namespace deft::ext::cpu {

kernel_table conv2d_kernels();
kernel_table elementwise_kernels();
kernel_table index_kernels();
kernel_table matmul_kernels();
kernel_table pool_kernels();
kernel_table random_kernels();
kernel_table reduce_kernels();
kernel_table shape_kernels();
kernel_table softmax_kernels();

/// The kernel of an elementwise operation alone, from its row.
kernel_ptr make_elementwise(const node_def& n, std::span<const tensor_type> in);

/// The same of strings, for equal and not_equal.
kernel_ptr make_string_equality(const node_def& n);

/// The kernel of a region with folds.
kernel_ptr make_region(const program& p, std::span<const std::int64_t> immediates);
/// Of one whose folds leave a value for every row.
kernel_ptr make_row_region(const program& p, std::span<const std::int64_t> immediates);

}  // namespace deft::ext::cpu
