// SPDX-License-Identifier: Apache-2.0
// deft/op/leaky_relu.hpp: y = x, or slope x where x is negative.
#pragma once
#include <deft/op/base/shapes.hpp>
#include <deft/op/greater.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/where.hpp>

namespace deft::op {
/// Only messages use this name.
struct leaky_relu {
  static constexpr std::string_view name = "leaky_relu";
};
}  // namespace deft::op

namespace deft {
/// x where it is positive, else slope x, of each element, floating. NaN stays NaN; the gradient at
/// 0 is the slope.
template <ext::expression X>
auto leaky_relu(const X& x, double slope = 0.01, ext::source_location w = ext::here()) {
  if constexpr (detail::takes_floating<op::leaky_relu, X>()) {
    detail::expect_floating("leaky_relu", x, w);
    return where(ext::make<op::greater>(w, x, 0), x, ext::make<op::mul>(w, x, slope), w);
  } else
    return detail::refused();
}
}  // namespace deft
