// SPDX-License-Identifier: Apache-2.0
// deft/op/sigmoid.hpp: y = 1 / (1 + exp(-x)), as (1 + tanh(x / 2)) / 2, which cannot overflow.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct sigmoid : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "sigmoid";

  template <class V>
  V operator()(V x) const {
    return num::mul(num::constant<V>(0.5),
                    num::add(num::constant<V>(1), num::tanh(num::mul(num::constant<V>(0.5), x))));
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// The logistic function of each element.
template <expression X>
auto sigmoid(const X& x, source_place w = here()) {
  return make<op::sigmoid>(w, x);
}
}  // namespace deft

#include <deft/op/mul.hpp>
#include <deft/op/sub.hpp>
template <class N>
auto deft::op::sigmoid::grad(const N& n, any_tensor dz) {
  auto y = n.out();
  return dz * (y * (1 - y));
}
