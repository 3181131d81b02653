// SPDX-License-Identifier: Apache-2.0
// deft/op/expm1.hpp: y = exp(x) - 1, accurate for small x.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct expm1 : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "expm1";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::expm1(x);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// exp(x) - 1 of each element, float or double, accurate for small x.
template <ext::expression X>
auto expm1(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::expm1>(w, x);
}
}  // namespace deft

#include <deft/op/exp.hpp>
#include <deft/op/mul.hpp>
template <class N>
auto deft::op::expm1::grad(const N& n, any_tensor dz) {
  return dz * deft::exp(n.template in<0>());
}
