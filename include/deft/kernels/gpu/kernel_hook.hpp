// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/kernel_hook.hpp: the kernel hook of .cu files that include deft/deft.hpp. What
// such a file uses is compiled for GPUs, and known to the whole process before main.
#pragma once
#include <deft/kernels/gpu/compiled.hpp>
#include <deft/kernels/lane_row.hpp>
#include <deft/kernels/user_op_hook.hpp>
#include <deft/kernels/vector_registers.hpp>

namespace deft::ext {
namespace gpu::DEFT_GPU_SYSTEM {

/// Each fused expression is compiled for this system's GPUs, but the few that have more operands
/// than a kernel takes.
struct used_kernels {
  template <class X>
  static void use() {
    if constexpr (sizeof(elements<X, 4>) <= most_parameters)
      static_cast<void>(&registered<X>::entry);
  }
  template <class X, class Op>
  static void use_fold() {
    using How = typename join_of<Op::folds>::type;
    if constexpr (sizeof(fold_of_parts<folded_elements<X, How>>) <= most_parameters)
      static_cast<void>(&registered_fold<X, How>::entry);
  }
  /// On the processor too, by a kernel that is slower than that of a .cpp file and gives way to it;
  /// narrow types on the processor alone.
  template <class Op, class T>
  static void use_operation() {
    static_cast<void>(&lane_row<Op, T>::entry);
    if constexpr (!is_narrow_type<T>) static_cast<void>(&registered_operation<Op, T>::entry);
  }
};

}  // namespace gpu::DEFT_GPU_SYSTEM

template <class X>
gpu::DEFT_GPU_SYSTEM::used_kernels kernel_choice(const X*, compiled_or_none);

}  // namespace deft::ext

namespace deft::detail {

// Nobody calls it, so that one program may have two of it: this, and that of its .cpp files.
template <class Op, class T>
void compile_user_op() {
  if constexpr (is_user_op<Op>) use_user_op<gpu::DEFT_GPU_SYSTEM::used_kernels, Op, T>();
}

}  // namespace deft::detail
