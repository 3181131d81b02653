// SPDX-License-Identifier: Apache-2.0
// deft/op/sigmoid_cross_entropy.hpp: the loss of independent yes-or-no classes, stable for large
// logits.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct sigmoid_cross_entropy : elementwise<2, typing::floating> {
  static constexpr std::string_view name = "sigmoid_cross_entropy";

  // max(x, 0) - x z + log(1 + exp(-|x|)); the first two as one product, which does not cancel.
  template <num::value V>
  DEFT_HD V operator()(V x, V z) const {
    V w = num::select(x < 0, -z, 1 - z);
    return num::select(w == 0, V(0), x * w) + num::log1p(num::exp(-num::abs(x)));
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// For each element -z log(sigmoid(x)) - (1 - z) log(1 - sigmoid(x)), where x is the logit and the
/// label z the probability of yes, both float or both double; broadcast as for `+`. It is infinite
/// only for an infinite logit with another label.
template <class X, class Z>
requires ext::operands<X, Z>
auto sigmoid_cross_entropy(const X& logits, const Z& labels, ext::source_location w = ext::here()) {
  return ext::make<op::sigmoid_cross_entropy>(w, logits, labels);
}
}  // namespace deft

#include <deft/op/less.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/neg.hpp>
#include <deft/op/sigmoid.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/where.hpp>
template <class N>
auto deft::op::sigmoid_cross_entropy::grad(const N& n, any_tensor dz) {
  any_tensor x = n.template in<0>(), z = n.template in<1>();
  // sigmoid(x) - z, which keeps its bits where sigmoid(x) is almost 1.
  auto dx = deft::where(x < 0, deft::sigmoid(x) - z, (1 - z) - deft::sigmoid(-x));
  return std::tuple{dz * dx, dz * -x};
}
