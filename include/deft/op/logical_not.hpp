// SPDX-License-Identifier: Apache-2.0
// deft/op/logical_not.hpp: y = !x; bool only.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct logical_not : elementwise<1, typing::logical> {
  static constexpr std::string_view name = "logical_not";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return !x;
  }
};
}  // namespace deft::op

namespace deft {
/// Elementwise negation of a tensor of bool.
template <ext::expression X>
requires detail::typed_operands<X, X>
auto operator!(const X& x) { return ext::make<op::logical_not>({}, x); }
/// The same of an any_tensor; its node has the line of the operator.
template <class = void>
any_tensor operator!(const detail::any_operand& x) {
  return detail::make_any_at<op::logical_not>(x);
}
}  // namespace deft
