// SPDX-License-Identifier: Apache-2.0
// deft/op/log1p.hpp: y = log(1 + x), accurate for small x.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct log1p : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "log1p";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::log1p(x);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// The natural logarithm of 1 + x for each element, float or double, accurate for small x.
template <ext::expression X>
auto log1p(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::log1p>(w, x);
}
}  // namespace deft

#include <deft/op/add.hpp>
#include <deft/op/div.hpp>
template <class N>
auto deft::op::log1p::grad(const N& n, any_tensor dz) {
  return dz / (n.template in<0>() + 1);
}
