// SPDX-License-Identifier: Apache-2.0
// deft/op/pow.hpp: z = x to the power of y.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct pow : elementwise<2, typing::floating> {
  static constexpr std::string_view name = "pow";

  template <num::value V>
  DEFT_HD V operator()(V x, V y) const {
    return num::pow(x, y);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// x to the power of y for each pair of elements, as std::pow: NaN for a negative x and a y that is
/// not an integer. The gradient for y is 0 where x is not positive, and both are 0 where y is
/// and x is 0, or smaller than 1e-37.
template <class X, class Y>
requires ext::operands<X, Y>
auto pow(const X& x, const Y& y, ext::source_location w = ext::here()) {
  return ext::make<op::pow>(w, x, y);
}
}  // namespace deft

#include <deft/op/abs.hpp>
#include <deft/op/equal.hpp>
#include <deft/op/greater.hpp>
#include <deft/op/less.hpp>
#include <deft/op/log.hpp>
#include <deft/op/logical_and.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/where.hpp>
template <class N>
auto deft::op::pow::grad(const N& n, any_tensor dz) {
  auto x = n.template in<0>(), y = n.template in<1>();
  // No logarithm of what has none.
  auto positive = x > 0;
  auto dy = deft::where(positive, dz * n.out() * deft::log(deft::where(positive, x, 1)), 0);
  // No infinity where y is 0 and x is, or is so small that 1 / x is infinite. Other operands, not
  // other results: a derivative that is not chosen would be 0 times infinity, too.
  auto none = y == 0 && deft::abs(x) < 1e-37;
  auto dx = dz * deft::where(none, 0, y) * deft::pow(deft::where(none, 1, x), y - 1);
  return std::tuple{dx, dy};
}
