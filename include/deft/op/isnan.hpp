// SPDX-License-Identifier: Apache-2.0
// deft/op/isnan.hpp: whether an element is not a number.
#pragma once
#include <deft/op/base/shapes.hpp>
#include <deft/op/not_equal.hpp>

namespace deft::op {
/// Only messages use this name.
struct isnan {
  static constexpr std::string_view name = "isnan";
};
}  // namespace deft::op

namespace deft {
/// Whether each element, floating, is NaN.
template <ext::expression X>
auto isnan(const X& x, ext::source_location w = ext::here()) {
  if constexpr (detail::takes_floating<op::isnan, X>()) {
    detail::expect_floating("isnan", x, w);
    return ext::make<op::not_equal>(w, x, x);
  } else
    return detail::refused();
}
}  // namespace deft
