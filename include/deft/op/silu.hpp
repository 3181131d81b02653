// SPDX-License-Identifier: Apache-2.0
// deft/op/silu.hpp: y = x * sigmoid(x), also called swish.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct silu : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "silu";

  // exp(-|x|) as a square: it underflows before x times it does.
  template <num::value V>
  DEFT_HD V operator()(V x) const {
    V h = num::exp(num::abs(x) * -0.5);
    V b = num::maximum(x, -2000);  // no infinity times 0
    return num::select(x < 0, b * h * h, b) / (1 + h * h);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// x * sigmoid(x) of each element, float or double.
template <ext::expression X>
auto silu(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::silu>(w, x);
}
}  // namespace deft

#include <deft/op/add.hpp>
#include <deft/op/maximum.hpp>
#include <deft/op/minimum.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/neg.hpp>
#include <deft/op/sigmoid.hpp>
template <class N>
auto deft::op::silu::grad(const N& n, any_tensor dz) {
  any_tensor x = n.template in<0>(), b = deft::minimum(deft::maximum(x, -2000), 2000);
  return dz * (deft::sigmoid(b) * (b * deft::sigmoid(-b) + 1));
}
