// SPDX-License-Identifier: Apache-2.0
// deft/op/square.hpp: y = x * x.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct square : elementwise<1> {
  static constexpr std::string_view name = "square";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return x * x;
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// Each number times itself, in the dtype of x; integers wrap.
template <ext::expression X>
auto square(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::square>(w, x);
}
}  // namespace deft

#include <deft/op/mul.hpp>
template <class N>
auto deft::op::square::grad(const N& n, any_tensor dz) {
  return dz * 2 * n.template in<0>();
}
