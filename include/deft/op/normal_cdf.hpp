// SPDX-License-Identifier: Apache-2.0
// deft/op/normal_cdf.hpp: the distribution function of the standard normal distribution.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct normal_cdf : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "normal_cdf";

  /// The probability of a value above a, which is not negative: to a few units in the last place
  /// also where it is small. exp(-a^2 / 2) is a product, as the rounding of a^2 would be too much:
  /// h^2 is exact.
  template <num::value V>
  static DEFT_HD V above(V a) {
    V b = num::minimum(a, 50);  // beyond, it is 0
    V h = num::floor(b * 64) * 0.015625;
    V e = num::exp(h * h * -0.5) * num::exp((b - h) * (b + h) * -0.5);
    return num::erfcx(b * 0.7071067811865476) * 0.5 * e;
  }

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    V tail = above(num::abs(x));
    return num::select(x < 0, tail, 1 - tail);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// The probability that a standard normal value is below each element, float or double:
/// (1 + erf(x / sqrt(2))) / 2, without cancellation for negative x.
template <ext::expression X>
auto normal_cdf(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::normal_cdf>(w, x);
}
}  // namespace deft

#include <deft/op/exp.hpp>
#include <deft/op/maximum.hpp>
#include <deft/op/minimum.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/square.hpp>
template <class N>
auto deft::op::normal_cdf::grad(const N& n, any_tensor dz) {
  // Beyond, it is 0, and so is its own derivative, not an infinity times that.
  any_tensor b = deft::minimum(deft::maximum(n.template in<0>(), -50), 50);
  return dz * (deft::exp(deft::square(b) * -0.5) * 0.3989422804014327);
}
