// SPDX-License-Identifier: Apache-2.0
// deft/op/logical_or.hpp: z = x || y; bool only.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct logical_or : elementwise<2, typing::logical> {
  static constexpr std::string_view name = "logical_or";

  template <num::value V>
  DEFT_HD V operator()(V x, V y) const {
    return x || y;
  }
};
}  // namespace deft::op

namespace deft {
/// Elementwise logical or of tensors of bool, operands as for `+`. Both are evaluated.
template <class X, class Y>
requires detail::typed_operands<X, Y>
auto operator||(const X& x, const Y& y) { return ext::make<op::logical_or>({}, x, y); }
/// The same where an operand is an any_tensor; its node has the line of the operator.
template <class = void>
any_tensor operator||(const detail::any_operand& x, const detail::any_operand& y) {
  return detail::make_any_at<op::logical_or>(x, y);
}
}  // namespace deft
