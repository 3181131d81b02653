// SPDX-License-Identifier: Apache-2.0
// deft/op/cos.hpp: y = cos(x).
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct cos : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "cos";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::cos(x);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// Cosine of each element, in radians.
template <ext::expression X>
auto cos(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::cos>(w, x);
}
}  // namespace deft

#include <deft/op/mul.hpp>
#include <deft/op/neg.hpp>
#include <deft/op/sin.hpp>
template <class N>
auto deft::op::cos::grad(const N& n, any_tensor dz) {
  return -(dz * deft::sin(n.template in<0>()));
}
