// SPDX-License-Identifier: Apache-2.0
// deft/op/exp.hpp: y = exp(x).
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct exp : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "exp";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::exp(x);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// e to the power of each element, float or double.
template <ext::expression X>
auto exp(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::exp>(w, x);
}
}  // namespace deft

#include <deft/op/mul.hpp>
template <class N>
auto deft::op::exp::grad(const N& n, any_tensor dz) {
  return dz * n.out();
}
