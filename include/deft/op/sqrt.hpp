// SPDX-License-Identifier: Apache-2.0
// deft/op/sqrt.hpp: y = sqrt(x).
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct sqrt : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "sqrt";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::sqrt(x);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// Square root of each element, float or double; NaN for negative ones.
template <ext::expression X>
auto sqrt(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::sqrt>(w, x);
}
}  // namespace deft

#include <deft/op/div.hpp>
#include <deft/op/mul.hpp>
template <class N>
auto deft::op::sqrt::grad(const N& n, any_tensor dz) {
  return dz * 0.5 / n.out();
}
