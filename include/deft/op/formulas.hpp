// SPDX-License-Identifier: Apache-2.0
// deft/op/formulas.hpp: what optimizers compute for each element, as devices compile it: a variable
// and its slots in one pass.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/div.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/sqrt.hpp>
#include <deft/op/square.hpp>
#include <deft/op/sub.hpp>

namespace deft::ext::formula {

/// A formula reads `operands` values, `inputs`, the variables that it updates first, and then
/// `literals`; it writes `results` values, the variables' new ones. `apply(op, values...)` is that
/// operation of such values, whatever they are. What a plan makes of an optimizer's nodes is the
/// same program.
struct adagrad {
  static constexpr int inputs = 3, literals = 1, operands = inputs + literals, results = 2;

  /// Of the variable, the sum of squares, the gradient, and the learning rate.
  template <class Apply, class V>
  static DEFT_HD DEFT_ALWAYS_INLINE void run(Apply apply, const V* in, V* result) {
    const V step = apply(op::mul(), in[2], in[3]);
    result[1] = apply(op::add(), in[1], apply(op::square(), in[2]));
    result[0] = apply(op::sub(), in[0], apply(op::div(), step, apply(op::sqrt(), result[1])));
  }
};

/// Of the variable, the momentum slot, the gradient, and how much is kept and the learning rate, in
/// that order, or the rate first where it is a tensor.
template <bool TensorRate>
struct momentum {
  static constexpr int inputs = TensorRate ? 4 : 3, literals = 5 - inputs, results = 2,
                       operands = inputs + literals;
  static constexpr int kept = TensorRate ? 4 : 3, rate = TensorRate ? 3 : 4;

  template <class Apply, class V>
  static DEFT_HD DEFT_ALWAYS_INLINE void run(Apply apply, const V* in, V* result) {
    result[1] = apply(op::add(), apply(op::mul(), in[1], in[kept]), in[2]);
    result[0] = apply(op::sub(), in[0], apply(op::mul(), result[1], in[rate]));
  }
};
/// Likewise, with what is kept twice: of the step, then of the slot.
template <bool TensorRate>
struct nesterov {
  static constexpr int inputs = TensorRate ? 4 : 3, literals = 6 - inputs, results = 2,
                       operands = inputs + literals;
  static constexpr int kept = TensorRate ? 4 : 3, rate = TensorRate ? 3 : 5;

  template <class Apply, class V>
  static DEFT_HD DEFT_ALWAYS_INLINE void run(Apply apply, const V* in, V* result) {
    result[1] = apply(op::add(), apply(op::mul(), in[1], in[kept + 1]), in[2]);
    const V step = apply(op::add(), in[2], apply(op::mul(), in[kept], result[1]));
    result[0] = apply(op::sub(), in[0], apply(op::mul(), step, in[rate]));
  }
};

/// Of the variable, the mean square, the gradient, the learning rate, the part of the new square,
/// and epsilon.
struct rmsprop {
  static constexpr int inputs = 3, literals = 3, operands = inputs + literals, results = 2;

  template <class Apply, class V>
  static DEFT_HD DEFT_ALWAYS_INLINE void run(Apply apply, const V* in, V* result) {
    const V step = apply(op::mul(), in[2], in[3]);
    const V more = apply(op::sub(), apply(op::square(), in[2]), in[1]);
    result[1] = apply(op::add(), in[1], apply(op::mul(), more, in[4]));
    const V root = apply(op::sqrt(), apply(op::add(), result[1], in[5]));
    result[0] = apply(op::sub(), in[0], apply(op::div(), step, root));
  }
};

/// Of the variable, the mean square, the mean, the gradient, the corrected learning rate, the parts
/// of the new mean and square, and epsilon.
struct adam {
  static constexpr int inputs = 5, literals = 3, operands = inputs + literals, results = 3;

  template <class Apply, class V>
  static DEFT_HD DEFT_ALWAYS_INLINE void run(Apply apply, const V* in, V* result) {
    result[2] = apply(op::add(), in[2], apply(op::mul(), apply(op::sub(), in[3], in[2]), in[5]));
    const V step = apply(op::mul(), result[2], in[4]);
    const V more = apply(op::sub(), apply(op::square(), in[3]), in[1]);
    result[1] = apply(op::add(), in[1], apply(op::mul(), more, in[6]));
    const V root = apply(op::add(), apply(op::sqrt(), result[1]), in[7]);
    result[0] = apply(op::sub(), in[0], apply(op::div(), step, root));
  }
};

}  // namespace deft::ext::formula
