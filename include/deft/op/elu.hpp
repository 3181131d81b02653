// SPDX-License-Identifier: Apache-2.0
// deft/op/elu.hpp: y = x, or alpha (exp(x) - 1) where x is negative.
#pragma once
#include <deft/op/base/shapes.hpp>
#include <deft/op/expm1.hpp>
#include <deft/op/greater.hpp>
#include <deft/op/minimum.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/where.hpp>

namespace deft::op {
/// Only messages use this name.
struct elu {
  static constexpr std::string_view name = "elu";
};
}  // namespace deft::op

namespace deft {
/// x where it is positive, else alpha (exp(x) - 1), of each element, floating (Clevert, Unterthiner
/// and Hochreiter, 2016). NaN stays NaN; the gradient at 0 is alpha.
template <ext::expression X>
auto elu(const X& x, double alpha = 1, ext::source_location w = ext::here()) {
  if constexpr (detail::takes_floating<op::elu, X>()) {
    detail::expect_floating("elu", x, w);
    return where(ext::make<op::greater>(w, x, 0), x,
                 ext::make<op::mul>(w, expm1(minimum(x, 0, w), w), alpha), w);
  } else
    return detail::refused();
}
}  // namespace deft
