// SPDX-License-Identifier: Apache-2.0
// deft/op/isfinite.hpp: whether an element is neither NaN nor an infinity.
#pragma once
#include <deft/op/abs.hpp>
#include <deft/op/base/shapes.hpp>
#include <deft/op/less.hpp>
#include <limits>

namespace deft::op {
/// Only messages use this name.
struct isfinite {
  static constexpr std::string_view name = "isfinite";
};
}  // namespace deft::op

namespace deft {
/// Whether each element, floating, is neither NaN nor an infinity.
template <ext::expression X>
auto isfinite(const X& x, ext::source_location w = ext::here()) {
  if constexpr (detail::takes_floating<op::isfinite, X>()) {
    detail::expect_floating("isfinite", x, w);
    return ext::make<op::less>(w, abs(x, w), std::numeric_limits<float>::infinity());
  } else
    return detail::refused();
}
}  // namespace deft
