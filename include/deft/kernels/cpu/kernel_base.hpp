// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/kernel_base.hpp: what the CPU's own kernels share: scratch memory of a
// thread, and how they refuse.
#pragma once
#include <deft/expr/op_record.hpp>
#include <deft/kernels/widened_kernel.hpp>

namespace deft::ext::cpu {

/// Memory of the calling thread, kept for its next use: at least `bytes`, aligned to 64, contents
/// undefined. One use at a time.
void* thread_scratch(std::size_t bytes);

/// No kernel for these dtypes.
[[noreturn]] inline void no_kernel(const node_def& n, dtype t) { no_kernel_on("the CPU", n, t); }
kernel_ptr make_cast(dtype from, dtype to);
/// As kernel_or_widened.
template <dtype_set Types, class F>
kernel_ptr kernel_for(const node_def& n, dtype t, F make) {
  return kernel_or_widened<Types>("the CPU", n, t, std::move(make), &make_cast);
}

}  // namespace deft::ext::cpu
