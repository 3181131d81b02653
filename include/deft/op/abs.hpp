// SPDX-License-Identifier: Apache-2.0
// deft/op/abs.hpp: y = |x|.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct abs : elementwise<1> {
  static constexpr std::string_view name = "abs";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::abs(x);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// Absolute value of each element. The smallest integer stays what it is; the gradient at 0 is 0.
template <ext::expression X>
auto abs(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::abs>(w, x);
}
}  // namespace deft

#include <deft/op/mul.hpp>
#include <deft/op/sign.hpp>
template <class N>
auto deft::op::abs::grad(const N& n, any_tensor dz) {
  return dz * deft::sign(n.template in<0>());
}
