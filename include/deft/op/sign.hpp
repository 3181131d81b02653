// SPDX-License-Identifier: Apache-2.0
// deft/op/sign.hpp: y = -1, 0 or 1, the sign of x.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct sign : elementwise<1> {
  static constexpr std::string_view name = "sign";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::select(x < 0, V(-1), num::select(x > 0, V(1), x));
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// -1, 0 or 1 for each element; NaN stays NaN. It has no gradient.
template <ext::expression X>
auto sign(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::sign>(w, x);
}
}  // namespace deft

template <class N>
auto deft::op::sign::grad(const N&, any_tensor) {
  return any_tensor();
}
