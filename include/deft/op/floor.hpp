// SPDX-License-Identifier: Apache-2.0
// deft/op/floor.hpp: y = the largest integer that is not above x.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct floor : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "floor";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::floor(x);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// The largest integer that is not above each element. It has no gradient.
template <ext::expression X>
auto floor(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::floor>(w, x);
}
}  // namespace deft

template <class N>
auto deft::op::floor::grad(const N&, any_tensor) {
  return any_tensor();
}
