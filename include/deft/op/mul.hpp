// SPDX-License-Identifier: Apache-2.0
// deft/op/mul.hpp: z = x * y; integers wrap.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct mul : elementwise<2> {
  static constexpr std::string_view name = "mul";

  template <num::value V>
  DEFT_HD V operator()(V x, V y) const {
    return x * y;
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// Elementwise product of numbers (`matmul` is that of matrices); integers wrap. Operands as for
/// `+`.
template <class X, class Y>
requires detail::typed_operands<X, Y>
auto operator*(const X& x, const Y& y) { return ext::make<op::mul>({}, x, y); }
/// The same where an operand is an any_tensor; its node has the line of the operator.
template <class = void>
any_tensor operator*(const detail::any_operand& x, const detail::any_operand& y) {
  return detail::make_any_at<op::mul>(x, y);
}
}  // namespace deft

template <class N>
auto deft::op::mul::grad(const N& n, any_tensor dz) {
  return std::tuple{dz * n.template in<1>(), dz * n.template in<0>()};
}
