// SPDX-License-Identifier: Apache-2.0
// deft/op/div.hpp: z = x / y; integers truncate, and a zero divisor is invalid_argument.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct div : elementwise<2> {
  static constexpr std::string_view name = "div";

  template <num::value V>
  DEFT_HD V operator()(V x, V y) const {
    return x / y;
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// Elementwise quotient of numbers, operands as for `+`. Floating-point division follows IEEE 754.
/// Integer division truncates towards zero; a zero divisor makes the run throw invalid_argument.
template <class X, class Y>
requires detail::typed_operands<X, Y>
auto operator/(const X& x, const Y& y) { return ext::make<op::div>({}, x, y); }
/// The same where an operand is an any_tensor; its node has the line of the operator.
template <class = void>
any_tensor operator/(const detail::any_operand& x, const detail::any_operand& y) {
  return detail::make_any_at<op::div>(x, y);
}
}  // namespace deft

#include <deft/op/mul.hpp>
#include <deft/op/neg.hpp>
template <class N>
auto deft::op::div::grad(const N& n, any_tensor dz) {
  auto y = n.template in<1>();
  return std::tuple{dz / y, -(dz * n.out() / y)};
}
