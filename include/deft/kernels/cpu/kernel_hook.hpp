// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/kernel_hook.hpp: the kernel hook of files that include deft/deft.hpp. What such
// a file uses is compiled for the processor, and known to the whole process before main.
#pragma once
#include <deft/kernels/cpu/compiled.hpp>
#include <deft/kernels/lane_row.hpp>
#include <deft/kernels/user_op_hook.hpp>

namespace deft {
namespace ext {

namespace cpu {

template <class X>
struct registered {
  static const fused_registration entry;
};
template <class X>
const fused_registration registered<X>::entry{&deft::detail::program_of<X>, row_of<X>};

template <class X, class F>
struct registered_fold {
  static const fused_registration entry;
};
template <class X, class F>
const fused_registration registered_fold<X, F>::entry{&deft::detail::program_of<X>, fold_of<X, F>,
                                                      F::kind};

/// The row of an operation of the program's own on operands of T.
template <class Op, class T>
struct user_row {
  using X = single_call<Op, T>;
  static const user_kernel entry;
};
template <class Op, class T>
const user_kernel user_row<Op, T>::entry{record_of<Op>, dtype_of<T>,
                                         dtype_of<typename user_row<Op, T>::X::value_type>,
                                         row_of<typename user_row<Op, T>::X>};

}  // namespace cpu

/// The kernel hook of files that include deft/deft.hpp: each fused expression is compiled.
struct cpu_kernels {
  template <class X>
  static void use() {
    static_cast<void>(&cpu::registered<X>::entry);
  }
  template <class X, class Op>
  static void use_fold() {
    using F = typename join_of<Op::folds>::type;
    static_cast<void>(&cpu::registered_fold<X, F>::entry);
  }
  template <class Op, class T>
  static void use_operation() {
    // In packs where it is computed with; in lanes a narrow type has the same bits, and compiles
    // faster.
    if constexpr (is_narrow_type<T>)
      static_cast<void>(&lane_row<Op, T>::entry);
    else
      static_cast<void>(&cpu::user_row<Op, T>::entry);
  }
};
template <class X>
cpu_kernels kernel_choice(const X*, compiled_or_none);

}  // namespace ext

template <class Op, class T>
void detail::compile_user_op() {
  if constexpr (ext::is_user_op<Op>) ext::use_user_op<ext::cpu_kernels, Op, T>();
}

}  // namespace deft
