// SPDX-License-Identifier: Apache-2.0
// deft/kernels/user_op_hook.hpp: what files that include deft/deft.hpp compile of operations of
// the program's own, whatever the compiler.
#pragma once
#include <deft/core/num_text.hpp>
#include <deft/expr/gradient.hpp>
#include <deft/expr/kernel_arguments.hpp>
#include <deft/expr/op_record.hpp>
#include <deft/kernels/typed_kernel.hpp>
#include <deft/kernels/user_op.hpp>
#include <deft/op/catalog.hpp>

namespace deft::ext {

// Kernels of such operations, unlike the catalog's, are compiled where they are used.

template <class Op>
inline constexpr bool is_user_op = !op::catalog::has<record_type<Op>>;

template <class Op>
struct own_operation {
  static constexpr op_functions compiled() {
    op_functions f{.gradient = deft::detail::gradient_of<Op>()};
    if constexpr (requires { Op::make_call; }) f.make_call = &Op::make_call;
    return f;
  }
  static const op_registration entry;
};
template <class Op>
const op_registration own_operation<Op>::entry{record_of<Op>, functions_of<Op>, compiled()};

/// Makes operations of a folder of the library that are not in the catalog known to the process, as
/// the program's own are: before main, wherever the file that calls it is linked.
template <class... Op>
void add_operations(op::op_list<Op...>) {
  (static_cast<void>(&own_operation<Op>::entry), ...);
}

#ifndef __CUDACC__  // which takes text for something of the device, and has kernels of its own
template <class Op>
struct own_source {
  static std::string written() {
    const num::text x("x"), y("y"), z("z");
    if constexpr (Op::arity == 1)
      return Op()(x).s;
    else if constexpr (Op::arity == 2)
      return Op()(x, y).s;
    else
      return Op()(x, y, z).s;
  }
  static const op_registration entry;
};
template <class Op>
const op_registration own_source<Op>::entry{record_of<Op>, functions_of<Op>, {.source = &written}};
#endif

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
  return kernel_on<Op::kernel_types & plain_dtypes>("the CPU", n, t, [&]<class T>() {
    return std::make_unique<computing_kernel<Op, T>>(decode<Op>(n.attributes));
  });
}

/// The kernel of an operation with an algorithm of its own: its `make_kernel`, its `make_value` for
/// whole values, or its `compute<T>` for the dtypes `kernel_types`.
template <class Op>
struct own_algorithm {
  static constexpr auto make() {
    if constexpr (requires { Op::make_value; })
      return value_kernel_factory{&Op::make_value};
    else if constexpr (requires { Op::make_kernel; })
      return kernel_factory{&Op::make_kernel};
    else
      return kernel_factory{&make_computing<Op>};
  }
  static constexpr dtype_set types() {
    if constexpr (requires { Op::kernel_types; })
      return Op::kernel_types;
    else
      return all_dtypes | dtype_set{dtype::none};
  }
  static const user_kernel entry;
};
template <class Op>
const user_kernel own_algorithm<Op>::entry{record_of<Op>, types(), make()};

/// Compiles Op for T by `Kernels`, the file's hook, where its typing rule accepts that.
template <class Kernels, class Op, class T>
void use_row() {
  if constexpr (accepts(Op::typing_rule, dtype_of<T>) && plain_element<T>)
    Kernels::template use_operation<Op, T>();
}

/// Op, of the program's own, on operands of T; of any dtype if that is void.
template <class Kernels, class Op, class T>
void use_user_op() {
  static_cast<void>(&own_operation<Op>::entry);
  if constexpr (requires { Op::typing_rule; }) {
    static_assert(deft::detail::field_names<Op>.empty(),
                  "[operation] an elementwise operation has no attributes: make them operands");
#ifndef __CUDACC__
    static_cast<void>(&own_source<Op>::entry);
#endif
    if constexpr (!std::is_void_v<T>)
      use_row<Kernels, Op, T>();
    else
      each_dtype([]<class E>() { use_row<Kernels, Op, E>(); });
  } else if constexpr (
      requires { Op::kernel_types; } || requires { Op::make_value; })
    static_cast<void>(&own_algorithm<Op>::entry);
}

}  // namespace deft::ext
