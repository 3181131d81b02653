// SPDX-License-Identifier: Apache-2.0
// deft/op/neg.hpp: y = -x.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct neg : elementwise<1> {
  static constexpr std::string_view name = "neg";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return -x;
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// Each number with its sign changed, in the dtype of x; integers wrap.
template <ext::expression X>
requires detail::typed_operands<X, X>
auto operator-(const X& x) { return ext::make<op::neg>({}, x); }
/// The same of an any_tensor; its node has the line of the operator.
template <class = void>
any_tensor operator-(const detail::any_operand& x) {
  return detail::make_any_at<op::neg>(x);
}
}  // namespace deft

template <class N>
auto deft::op::neg::grad([[maybe_unused]] const N& n, any_tensor dz) {
  return -dz;
}
