// SPDX-License-Identifier: Apache-2.0
// deft/op/minimum.hpp: z = the smaller of x and y; NaN propagates, and a tie's gradient goes to
// x.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct minimum : elementwise<2> {
  static constexpr std::string_view name = "minimum";

  template <num::value V>
  DEFT_HD V operator()(V x, V y) const {
    return num::minimum(x, y);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// Elementwise minimum of numbers, NaN if either is; operands as for `+`.
template <class X, class Y>
requires ext::operands<X, Y>
auto minimum(const X& x, const Y& y, ext::source_location w = ext::here()) {
  return ext::make<op::minimum>(w, x, y);
}
}  // namespace deft

#include <deft/op/less_equal.hpp>
#include <deft/op/where.hpp>
template <class N>
auto deft::op::minimum::grad(const N& n, any_tensor dz) {
  auto first = n.template in<0>() <= n.template in<1>();
  return std::tuple{deft::where(first, dz, 0), deft::where(first, 0, dz)};
}
