// SPDX-License-Identifier: Apache-2.0
// deft/kernels/lane_row.hpp: the row of an expression type, an element at a time: for compilers
// that take no packs.
#pragma once
#include <deft/core/num_lane.hpp>
#include <deft/kernels/spec/expression_eval.hpp>
#include <deft/kernels/spec/op_as_expression.hpp>
#include <deft/kernels/user_op.hpp>

namespace deft::ext {

/// Element `element` of a row's operands.
struct lane_values {
  struct element_at {
    const row_call& row;
    std::int64_t element;
  };
  template <class T, int K>
  static DEFT_HD num::lane<computing_type<T>> load(const element_at& at, int) {
    return static_cast<const T*>(at.row.in[K])[at.row.mask[K] ? at.element : 0];
  }
  template <class Op, class... V>
  static DEFT_HD auto apply(const V&... v) {
    return Op()(v...);
  }
};

/// The row of an operation alone on operands of T.
template <class Op, class T>
struct lane_row {
  using X = deft::detail::single_call<Op, T>;
  using R = typename X::value_type;

  static void run(const row_call& c) {
    R* const out = static_cast<R*>(c.out);
    for (std::int64_t i = 0; i < c.n; ++i)
      out[i] = static_cast<R>(
          deft::detail::evaluation<X, lane_values, 0, 0>::run(lane_values::element_at{c, i}, 0).v);
  }
  static const user_kernel entry;
};
template <class Op, class T>
const user_kernel lane_row<Op, T>::entry{record_of<Op>, dtype_of<T>, dtype_of<R>, {&run, 1}};

}  // namespace deft::ext
