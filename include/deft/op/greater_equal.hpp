// SPDX-License-Identifier: Apache-2.0
// deft/op/greater_equal.hpp: z = x >= y, as bool.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct greater_equal : elementwise<2, typing::comparison> {
  static constexpr std::string_view name = "greater_equal";

  template <num::value V>
  DEFT_HD num::mask_t<V> operator()(V x, V y) const {
    return x >= y;
  }
};
}  // namespace deft::op

namespace deft {
/// Whether each x is at least y, as a tensor of bool; false for NaN. For numbers, operands as for
/// `+`.
template <class X, class Y>
requires detail::typed_operands<X, Y>
auto operator>=(const X& x, const Y& y) { return ext::make<op::greater_equal>({}, x, y); }
/// The same where an operand is an any_tensor; its node has the line of the operator.
template <class = void>
any_tensor operator>=(const detail::any_operand& x, const detail::any_operand& y) {
  return detail::make_any_at<op::greater_equal>(x, y);
}
}  // namespace deft
