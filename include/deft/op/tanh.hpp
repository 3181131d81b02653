// SPDX-License-Identifier: Apache-2.0
// deft/op/tanh.hpp: y = tanh(x).
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct tanh : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "tanh";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::tanh(x);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// Hyperbolic tangent of each element, float or double.
template <ext::expression X>
auto tanh(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::tanh>(w, x);
}
}  // namespace deft

#include <deft/op/mul.hpp>
#include <deft/op/sub.hpp>
template <class N>
auto deft::op::tanh::grad(const N& n, any_tensor dz) {
  auto y = n.out();
  return dz * (1 - y * y);
}
