// SPDX-License-Identifier: Apache-2.0
// deft/op/relu.hpp: y = max(x, 0); NaN propagates, and the gradient at 0 is 0.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct relu : elementwise<1> {
  static constexpr std::string_view name = "relu";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::maximum(x, 0);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// max(x, 0) of each number, in the dtype of x. NaN stays NaN; the gradient at 0 is 0.
template <ext::expression X>
auto relu(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::relu>(w, x);
}
}  // namespace deft

#include <deft/op/greater.hpp>
#include <deft/op/where.hpp>
template <class N>
auto deft::op::relu::grad(const N& n, any_tensor dz) {
  return deft::where(n.out() > 0, dz, 0);
}
