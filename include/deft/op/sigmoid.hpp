// SPDX-License-Identifier: Apache-2.0
// deft/op/sigmoid.hpp: y = 1 / (1 + exp(-x)), to a few units in the last place everywhere.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct sigmoid : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "sigmoid";

  // 1 / (1 + exp(-x)), or exp(x) / (1 + exp(x)) where that loses nothing.
  template <num::value V>
  DEFT_HD V operator()(V x) const {
    V e = num::exp(-num::abs(x));
    return num::select(x < 0, e, V(1)) / (1 + e);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// The logistic function 1 / (1 + exp(-x)) of each element, float or double.
template <ext::expression X>
auto sigmoid(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::sigmoid>(w, x);
}
}  // namespace deft

#include <deft/op/mul.hpp>
#include <deft/op/neg.hpp>
template <class N>
auto deft::op::sigmoid::grad(const N& n, any_tensor dz) {
  // 1 - y as sigmoid(-x), which keeps its bits where y is almost 1.
  return dz * (n.out() * deft::sigmoid(-n.template in<0>()));
}
