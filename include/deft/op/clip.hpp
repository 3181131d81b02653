// SPDX-License-Identifier: Apache-2.0
// deft/op/clip.hpp: elements between two limits.
#pragma once
#include <deft/op/maximum.hpp>
#include <deft/op/minimum.hpp>

namespace deft {
/// Each element of x, at least `low` and at most `high`, numbers or tensors of its dtype, which are
/// broadcast. NaN stays NaN; the gradient of an element that equals a limit is that of x.
template <ext::expression X, ext::operand Low, ext::operand High>
auto clip(const X& x, const Low& low, const High& high, ext::source_location w = ext::here()) {
  return minimum(maximum(x, low, w), high, w);
}
}  // namespace deft
