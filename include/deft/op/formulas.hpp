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

namespace deft::formula {

/// A formula reads `operands` values, `inputs`, the variables that it updates first, and then
/// `literals`; it writes `results` values, the variables' new ones. `apply(op, values...)` is that
/// operation of such values, whatever they are. What a plan makes of an optimizer's nodes is the
/// same program.
struct adagrad {
  static constexpr int inputs = 3, literals = 1, operands = inputs + literals, results = 2;

  /// Of the variable, the sum of squares, the gradient, and the learning rate.
  template <class Apply, class V>
  static DEFT_ALWAYS_INLINE void run(Apply apply, const V* in, V* result) {
    const V step = apply(op::mul(), in[2], in[3]);
    result[1] = apply(op::add(), in[1], apply(op::square(), in[2]));
    result[0] = apply(op::sub(), in[0], apply(op::div(), step, apply(op::sqrt(), result[1])));
  }
};

}  // namespace deft::formula
