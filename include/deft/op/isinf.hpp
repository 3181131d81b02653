// SPDX-License-Identifier: Apache-2.0
// deft/op/isinf.hpp: whether an element is an infinity.
#pragma once
#include <deft/op/abs.hpp>
#include <deft/op/base/shapes.hpp>
#include <deft/op/equal.hpp>
#include <limits>

namespace deft::op {
/// Only messages use this name.
struct isinf {
  static constexpr std::string_view name = "isinf";
};
}  // namespace deft::op

namespace deft {
/// Whether each element, floating, is an infinity of either sign.
template <ext::expression X>
auto isinf(const X& x, ext::source_location w = ext::here()) {
  if constexpr (detail::takes_floating<op::isinf, X>()) {
    detail::expect_floating("isinf", x, w);
    return ext::make<op::equal>(w, abs(x, w), std::numeric_limits<float>::infinity());
  } else
    return detail::refused();
}
}  // namespace deft
