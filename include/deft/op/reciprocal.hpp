// SPDX-License-Identifier: Apache-2.0
// deft/op/reciprocal.hpp: y = 1 / x of floating numbers.
#pragma once
#include <deft/op/base/shapes.hpp>
#include <deft/op/div.hpp>

namespace deft::op {
/// Only messages use this name.
struct reciprocal {
  static constexpr std::string_view name = "reciprocal";
};
}  // namespace deft::op

namespace deft {
/// 1 / x of each element, floating.
template <ext::expression X>
auto reciprocal(const X& x, ext::source_location w = ext::here()) {
  if constexpr (detail::takes_floating<op::reciprocal, X>()) {
    detail::expect_floating("reciprocal", x, w);
    return ext::make<op::div>(w, 1, x);
  } else
    return detail::refused();
}
}  // namespace deft
