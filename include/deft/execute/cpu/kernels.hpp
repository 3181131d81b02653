// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/kernels.hpp: the factories of the CPU's kernels, one for each operation or kin.
#pragma once
#include <deft/execute/kernel.hpp>

namespace deft::cpu {

kernel_ptr make_fused(const node_def& n, std::span<const tensor_type> in);
/// Any elementwise operation of the catalog.
kernel_ptr make_elementwise(const node_def& n, std::span<const tensor_type> in);

kernel_ptr make_matmul(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_sum(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_mean(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_max(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_sum_to(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_softmax(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_softmax_cross_entropy(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_softmax_cross_entropy_grad(const node_def& n, std::span<const tensor_type> in);

kernel_ptr make_argmax(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_first_max(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_broadcast_to(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_transpose(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_concat(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_concat_part(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_gather(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_scatter_add(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_one_hot(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_size_of(const node_def& n, std::span<const tensor_type> in);

kernel_ptr make_random_uniform(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_random_normal(const node_def& n, std::span<const tensor_type> in);
kernel_ptr make_truncated_normal(const node_def& n, std::span<const tensor_type> in);

/// assign_add and assign_sub: input 0 is the variable's elements, input 1 the value.
kernel_ptr make_update(const node_def& n, std::span<const tensor_type> in);

}  // namespace deft::cpu
