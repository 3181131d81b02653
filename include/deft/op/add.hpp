// SPDX-License-Identifier: Apache-2.0
// deft/op/add.hpp: z = x + y; integers wrap.
#pragma once
#include <deft/op/base/elementwise.hpp>

namespace deft::op {
struct add : elementwise<2> {
  static constexpr std::string_view name = "add";

  template <num::value V>
  DEFT_HD V operator()(V x, V y) const {
    return x + y;
  }

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// x + y for each pair of elements. Shapes are broadcast as NumPy does: they are aligned at the
/// last axis, and extents of 1 are repeated. The dtypes must be equal: use cast<T>(x). An
/// arithmetic value of C++, as in `x + 1`, takes the dtype of the tensor, which must be able to
/// represent it. Integers wrap. Operands that do not fit are compile-time errors, or
/// invalid_argument where dtype or shape is known only at run time.
template <class X, class Y>
requires operands<X, Y>
auto operator+(const X& x, const Y& y) { return make<op::add>({}, x, y); }
}  // namespace deft

template <class N>
auto deft::op::add::grad([[maybe_unused]] const N& n, any_tensor dz) {
  return std::tuple{dz, dz};
}
