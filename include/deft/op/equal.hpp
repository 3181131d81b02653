// SPDX-License-Identifier: Apache-2.0
// deft/op/equal.hpp: z = x == y, as bool.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct equal : elementwise<2, typing::matching> {
  static constexpr std::string_view name = "equal";

  template <num::value V>
  DEFT_HD num::mask_t<V> operator()(V x, V y) const {
    return x == y;
  }
};
}  // namespace deft::op

namespace deft {
/// Elementwise equality as a tensor of bool, for tensors of any one dtype, operands as for `+`. NaN
/// equals nothing. Whether two handles are the same tensor is `same(x, y)`.
template <class X, class Y>
requires detail::typed_operands<X, Y>
auto operator==(const X& x, const Y& y) { return ext::make<op::equal>({}, x, y); }
/// The same where an operand is an any_tensor; its node has the line of the operator.
template <class = void>
any_tensor operator==(const detail::any_operand& x, const detail::any_operand& y) {
  return detail::make_any_at<op::equal>(x, y);
}
/// The same with a text: `words == "a"`.
/// @{
template <ext::expression X>
auto operator==(const X& x, const detail::text_operand& y) {
  return ext::make<op::equal>(y.location(), x, y.constant());
}
template <ext::expression Y>
auto operator==(const detail::text_operand& x, const Y& y) {
  return ext::make<op::equal>(x.location(), x.constant(), y);
}
/// @}
}  // namespace deft
