// SPDX-License-Identifier: Apache-2.0
// deft/op/log.hpp: y = log(x), the natural logarithm.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct log : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "log";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::log(x);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// Natural logarithm of each element, float or double; NaN for negative ones, -infinity for 0.
template <ext::expression X>
auto log(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::log>(w, x);
}
}  // namespace deft

#include <deft/op/div.hpp>
template <class N>
auto deft::op::log::grad(const N& n, any_tensor dz) {
  return dz / n.template in<0>();
}
