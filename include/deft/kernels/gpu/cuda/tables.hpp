// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/tables.hpp: what nvcc compiles, as the host's compiler sees it.
#pragma once
#include <deft/kernels/kernel.hpp>

namespace deft::ext::gpu::cuda {

class stream;

/// The kernels of CUDA's GPUs.
std::span<const kernel_table> kernel_tables();
/// See gpu/kernels.hpp.
using element_maker = kernel_ptr (*)(const op_def& op, dtype operand, dtype result);
element_maker& other_elements();
/// Whether nvcc has compiled the program of an update: it is an optimizer's formula.
bool has_formula(const program& p);
/// Queues a copy that is left out where the stream's run has failed.
void copy_unless_failed(stream& s, void* to, const void* from, std::size_t bytes);

}  // namespace deft::ext::gpu::cuda
