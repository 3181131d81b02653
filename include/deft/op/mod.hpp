// SPDX-License-Identifier: Apache-2.0
// deft/op/mod.hpp: z = x % y, what is left where x / y truncates, with the sign of x; integers
// only, and a zero divisor is invalid_argument.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct mod : elementwise<2, typing::integral> {
  static constexpr std::string_view name = "mod";

  template <num::value V>
  DEFT_HD V operator()(V x, V y) const {
    return x % y;
  }
};
}  // namespace deft::op

namespace deft {
/// Elementwise remainder of integers, operands as for `+`: x - (x / y) * y, with the sign of x. A
/// zero divisor makes the run throw invalid_argument.
template <class X, class Y>
requires detail::typed_operands<X, Y>
auto operator%(const X& x, const Y& y) { return ext::make<op::mod>({}, x, y); }
/// The same where an operand is an any_tensor; its node has the line of the operator.
template <class = void>
any_tensor operator%(const detail::any_operand& x, const detail::any_operand& y) {
  return detail::make_any_at<op::mod>(x, y);
}
}  // namespace deft
