// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/use.hpp: the kernel hook of files that include deft/deft.hpp. What such a file
// uses is compiled for the processor, and known to the whole process before main.
#pragma once
#include <deft/execute/cpu/compiled.hpp>
#include <deft/execute/cpu/kernel_base.hpp>
#include <deft/execute/cpu/own.hpp>
#include <deft/expr/gradient.hpp>
#include <deft/expr/kernel_arguments.hpp>
#include <deft/op/catalog.hpp>

namespace deft {
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
const fused_registration registered_fold<X, F>::entry{
    &deft::detail::program_of<X>, fold_of<X, F>,
    std::is_same_v<F, plus> ? fold_kind::sum : fold_kind::max};

// Operations of the program's own. Their kernels, unlike the catalog's, are compiled where they are
// used.

template <class Op>
inline constexpr bool is_own = !op::catalog::has<record_type<Op>>;

template <class Op>
struct own_operation {
  static const op_registration entry;
};
template <class Op>
const op_registration own_operation<Op>::entry{record_of<Op>, functions_of<Op>,
                                               deft::detail::gradient_of<Op>()};

/// The row of an elementwise operation on operands of T.
template <class Op, class T>
struct own_row {
  using X = single_call<Op, T>;
  static const own_kernel entry;
};
template <class Op, class T>
const own_kernel own_row<Op, T>::entry{record_of<Op>, dtype_of<T>,
                                       dtype_of<typename own_row<Op, T>::X::value_type>,
                                       row_of<typename own_row<Op, T>::X>};

/// Runs `compute<T>` of an operation.
template <class Op, class T>
class computing_kernel final : public typed_kernel {
 public:
  explicit computing_kernel(Op o) : op_(std::move(o)) {}
  void run(const kernel_call& c) override {
    op_.template compute<T>(kernel_arguments(Op::name, in_, out_, c.in, c.out));
  }

 private:
  void ready() override {
    cost_ = 100;
    for (const auto& t : in_) cost_ += static_cast<double>(t.shape.elements());
    for (const auto& t : out_) cost_ += static_cast<double>(t.shape.elements());
  }

  Op op_;
};
template <class Op>
kernel_ptr make_computing(const node_def& n, std::span<const tensor_type> in) {
  const dtype t = dispatch_type(*n.op, in, n.outputs);
  return visit_dtype(t, [&]<class T>() -> kernel_ptr {
    if constexpr (Op::kernel_types.has(dtype_of<T>))
      return std::make_unique<computing_kernel<Op, T>>(decode<Op>(n.attributes));
    else
      no_kernel(n, t);
  });
}

/// The kernel of an operation with an algorithm of its own: its `make_kernel`, or its `compute<T>`
/// for the dtypes `kernel_types`.
template <class Op>
struct own_algorithm {
  static constexpr kernel_factory make() {
    if constexpr (requires { Op::make_kernel; })
      return &Op::make_kernel;
    else
      return &make_computing<Op>;
  }
  static const own_kernel entry;
};
template <class Op>
const own_kernel own_algorithm<Op>::entry{record_of<Op>, Op::kernel_types, make()};

/// The row of Op for T, where its typing rule accepts that.
template <class Op, class T>
void use_row() {
  if constexpr (accepts(Op::typing_rule, dtype_of<T>)) static_cast<void>(&own_row<Op, T>::entry);
}

/// Op, of the program's own, on operands of T; of any dtype if that is void.
template <class Op, class T>
void use_own() {
  static_cast<void>(&own_operation<Op>::entry);
  if constexpr (requires { Op::typing_rule; }) {
    static_assert(deft::detail::field_names<Op>.empty(),
                  "[operation] an elementwise operation has no attributes: make them operands");
    if constexpr (!std::is_void_v<T>)
      use_row<Op, T>();
    else {
      use_row<Op, float>();
      use_row<Op, double>();
      use_row<Op, std::int32_t>();
      use_row<Op, std::int64_t>();
      use_row<Op, std::uint8_t>();
      use_row<Op, bool>();
    }
  } else if constexpr (requires { Op::kernel_types; })
    static_cast<void>(&own_algorithm<Op>::entry);
}

}  // namespace cpu

/// The kernel hook of files that include deft/deft.hpp: each fused expression is compiled.
struct cpu_kernels {
  template <class X>
  static void use() {
    static_cast<void>(&cpu::registered<X>::entry);
  }
  template <class X, class Op>
  static void use_fold() {
    using F = std::conditional_t<Op::folds == fold_kind::max, cpu::largest, cpu::plus>;
    static_cast<void>(&cpu::registered_fold<X, F>::entry);
  }
};
template <class X>
cpu_kernels kernel_choice(const X*, int);

template <class Op, class T>
void detail::compile_own() {
  if constexpr (cpu::is_own<Op>) cpu::use_own<Op, T>();
}

}  // namespace deft
