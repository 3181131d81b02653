// SPDX-License-Identifier: Apache-2.0
// deft/op/sin.hpp: y = sin(x).
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct sin : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "sin";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::sin(x);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// Sine of each element, in radians.
template <ext::expression X>
auto sin(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::sin>(w, x);
}
}  // namespace deft

#include <deft/op/cos.hpp>
#include <deft/op/mul.hpp>
template <class N>
auto deft::op::sin::grad(const N& n, any_tensor dz) {
  return dz * deft::cos(n.template in<0>());
}
