// SPDX-License-Identifier: Apache-2.0
// deft/op/rsqrt.hpp: y = 1 / sqrt(x).
#pragma once
#include <deft/op/base/shapes.hpp>
#include <deft/op/div.hpp>
#include <deft/op/sqrt.hpp>

namespace deft::op {
/// Only messages use this name.
struct rsqrt {
  static constexpr std::string_view name = "rsqrt";
};
}  // namespace deft::op

namespace deft {
/// 1 / sqrt(x) of each element, floating: of 0 it is an infinity of its sign, of negative numbers
/// NaN.
template <ext::expression X>
auto rsqrt(const X& x, ext::source_location w = ext::here()) {
  if constexpr (detail::takes_floating<op::rsqrt, X>()) {
    detail::expect_floating("rsqrt", x, w);
    return ext::make<op::div>(w, 1, sqrt(x, w));
  } else
    return detail::refused();
}
}  // namespace deft
