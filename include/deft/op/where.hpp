// SPDX-License-Identifier: Apache-2.0
// deft/op/where.hpp: z = c ? x : y.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct where : elementwise<3, typing::select> {
  static constexpr std::string_view name = "where";

  template <num::value M, num::value V>
  DEFT_HD V operator()(M c, V x, V y) const {
    return num::select(c, x, y);
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// Elementwise choice: x where `c` is true, else y. `c` is a tensor of bool, x and y have the same
/// dtype, which is the result's; either may be a C++ scalar. All three are broadcast together.
/// Errors as for `+`.
template <ext::expression C, ext::operand X, ext::operand Y>
auto where(const C& c, const X& x, const Y& y, ext::source_location w = ext::here()) {
  return ext::make<op::where>(w, c, x, y);
}
/// @cond refused
template <ext::operand C, ext::operand... X>
requires(sizeof...(X) < 2 || (ext::scalar<C> && sizeof...(X) == 2)) detail::refused
    where(const C&, const X&...) {
  static_assert(
      detail::takes<op::where, detail::got<C>, detail::got<X>...>,
      "[where] expects a tensor of bool and two values to choose from, as in where(c, x, 0)");
  return {};
}
/// @endcond
}  // namespace deft

template <class N>
auto deft::op::where::grad(const N& n, any_tensor dz) {
  auto c = n.template in<0>();
  return std::tuple{any_tensor(), deft::where(c, dz, 0), deft::where(c, 0, dz)};
}
