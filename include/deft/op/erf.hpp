// SPDX-License-Identifier: Apache-2.0
// deft/op/erf.hpp: the error function.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct erf : elementwise<1, typing::floating> {
  static constexpr std::string_view name = "erf";

  template <num::value V>
  DEFT_HD V operator()(V x) const {
    return num::erf(x);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// The error function of each element, float or double: 2 / sqrt(pi) times the integral of
/// exp(-t^2) from 0 to x.
template <ext::expression X>
auto erf(const X& x, ext::source_location w = ext::here()) {
  return ext::make<op::erf>(w, x);
}
}  // namespace deft

#include <deft/op/exp.hpp>
#include <deft/op/maximum.hpp>
#include <deft/op/minimum.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/neg.hpp>
#include <deft/op/square.hpp>
template <class N>
auto deft::op::erf::grad(const N& n, any_tensor dz) {
  // Beyond, it is 0, and so is its own derivative, not an infinity times that.
  any_tensor b = deft::minimum(deft::maximum(n.template in<0>(), -50), 50);
  return dz * (deft::exp(-deft::square(b)) * 1.1283791670955126);
}
