// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/op_as_expression.hpp: an elementwise operation alone, as an expression's type.
#pragma once
#include <deft/expr/lower.hpp>

namespace deft::detail {

template <class Op, class T>
auto call_alone() {
  static_assert(Op::arity >= 1 && Op::arity <= 3,
                "[operation] an elementwise operation has one to three operands");
  using L = leaf<T, shape_t<dyn>>;
  using First = leaf<std::conditional_t<Op::typing_rule == typing::select, bool, T>, shape_t<dyn>>;
  if constexpr (Op::arity == 1)
    return std::type_identity<call<Op, L>>();
  else if constexpr (Op::arity == 2)
    return std::type_identity<call<Op, L, L>>();
  else
    return std::type_identity<call<Op, First, L, L>>();
}
/// Op alone, on operands of T; a select's condition is bool.
template <class Op, class T>
using single_call = typename decltype(call_alone<Op, T>())::type;

/// The dtypes of operands for which the body of an operation with that rule is compiled, and those
/// of an operation.
constexpr dtype_set types_of(typing rule) {
  return plain_dtypes & dtypes_that([rule](dtype t) { return accepts(rule, t); });
}
template <class Op>
constexpr dtype_set operand_types() {
  if constexpr (requires { Op::typing_rule; })
    return types_of(Op::typing_rule);
  else
    return plain_dtypes;  // cast
}

}  // namespace deft::detail
