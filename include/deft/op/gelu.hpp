// SPDX-License-Identifier: Apache-2.0
// deft/op/gelu.hpp: y = x times the probability that a standard normal value is below x.
#pragma once
#include <deft/op/normal_cdf.hpp>

namespace deft::op {
struct gelu : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "gelu";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    // Where the probability is 0, no infinity times it.
    return num::maximum(x, -50) * normal_cdf()(x);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// x * normal_cdf(x) of each element, float or double (Hendrycks and Gimpel, 2016): the exact form,
/// to a few units in the last place for any x.
template <ext::expression X>
auto gelu(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::gelu>(w, x);
}
}  // namespace deft

#include <deft/op/add.hpp>
#include <deft/op/maximum.hpp>
#include <deft/op/minimum.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/sigmoid.hpp>
#include <deft/op/square.hpp>

namespace deft {
/// The approximation of gelu by tanh, which some published models were trained with:
/// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
template <ext::expression X>
auto gelu_tanh(const X& x, ext::source_location w = ext::here()) {
  // (1 + tanh(u)) / 2 is sigmoid(2u), which keeps its bits where it is small, and is 0 or 1 beyond
  // the bounds, within which nothing overflows.
  const auto b = deft::minimum(deft::maximum(x, -50, w), 50, w);
  return deft::maximum(x, -50, w) *
         deft::sigmoid(b * (deft::square(b, w) * 0.07135481627260025 + 1.5957691216057308), w);
}
}  // namespace deft

template <class N>
auto deft::op::gelu::grad(const N& n, any_tensor dz) {
  any_tensor x = n.template in<0>(), b = deft::minimum(deft::maximum(x, -50), 50);
  return dz * (deft::normal_cdf(x) + b * (deft::exp(deft::square(b) * -0.5) * 0.3989422804014327));
}
