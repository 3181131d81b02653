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
/// Elementwise sum of numbers; integers wrap.
///
/// All binary operators follow these rules. Two tensors must have the same dtype (`cast<T>(x)`
/// converts). It is also the result's, except that comparisons yield bool. Shapes are broadcast as
/// in NumPy: aligned at the last axis, with extents of 1 repeated. A C++ scalar takes the dtype of
/// the tensor; a floating-point scalar needs a floating-point tensor, a bool a tensor of bool. The
/// result is an unnamed expression, or an any_tensor if an operand is one.
///
/// Wrong dtypes and shapes are compile errors where the types show them. The operator throws
/// invalid_argument for those of an any_tensor, and for a scalar that the dtype cannot represent.
/// `dyn` extents that do not match make the run throw it.
template <class X, class Y>
requires detail::typed_operands<X, Y>
auto operator+(const X& x, const Y& y) { return ext::make<op::add>({}, x, y); }
/// The same where an operand is an any_tensor; its node has the line of the operator.
template <class = void>
any_tensor operator+(const detail::any_operand& x, const detail::any_operand& y) {
  return detail::make_any_at<op::add>(x, y);
}
}  // namespace deft

template <class N>
auto deft::op::add::grad([[maybe_unused]] const N& n, any_tensor dz) {
  return std::tuple{dz, dz};
}
