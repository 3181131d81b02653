// SPDX-License-Identifier: Apache-2.0
// deft/op/prod.hpp: products over all or some axes; integers wrap.
#pragma once
#include <deft/op/base/reduction.hpp>

namespace deft::op {
struct prod : reduction {
  static constexpr std::string_view name = "prod";

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

namespace detail {
any_tensor prod_gradient(const any_tensor& x, const any_tensor& dz, const op::reduction& r);
}  // namespace detail

/// The product of numbers over all axes, or some; arguments as for `sum`. Integers wrap; the
/// product of no elements is 1. Its gradient is right where elements are 0, too.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          detail::keep_choice Keep = detail::drop_axes, class K = ext::kernels_for<X>>
auto prod(const X& x, const A& a = {}, Keep keep = {}, ext::source_location w = ext::here()) {
  if constexpr (!detail::is_numeric_expression<X>) {
    static_assert(detail::takes<op::prod, detail::got<X>>,
                  "[prod] expects a tensor of numbers, and got bool or "
                  "strings: use cast<float>(x) of bool");
    return detail::refused();
  } else
    return detail::reduce<op::prod, K>(x, a, keep, w);
}
/// The same with axes known only at run time: `prod(x, {0, 2})`.
template <ext::expression X, detail::keep_choice Keep = detail::drop_axes,
          class K = ext::kernels_for<X>>
auto prod(const X& x, const axes& a, Keep keep = {}, ext::source_location w = ext::here()) {
  return prod<X, axes, Keep, K>(x, a, keep, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::misplaced_axes<Given...>) detail::refused
    prod(const X&, const Given&...) {
  detail::refuse_axes<op::prod, detail::got<X>, detail::got<Given>...>();
  return {};
}
/// @endcond
}  // namespace deft

template <class N>
auto deft::op::prod::grad(const N& n, any_tensor dz) {
  return detail::prod_gradient(n.template in<0>(), dz, n.attr());
}
