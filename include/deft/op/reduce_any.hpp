// SPDX-License-Identifier: Apache-2.0
// deft/op/reduce_any.hpp: whether any of some elements of bool are true.
#pragma once
#include <deft/op/base/reduction.hpp>

namespace deft::op {
/// Only messages use this name.
struct reduce_any {
  static constexpr std::string_view name = "reduce_any";
};
}  // namespace deft::op

namespace deft {

namespace detail {
any_tensor add_reduce_any(const any_tensor& x, const axes* given, bool keep, source_location w);
}  // namespace detail

/// Whether any element of a tensor of bool is true, over all axes, or some; arguments as for `sum`.
/// Of no elements: false.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          detail::keep_choice Keep = detail::drop_axes, class K = ext::kernels_for<X>>
auto reduce_any(const X& x, const A& a = {}, Keep keep = {}, ext::source_location w = ext::here()) {
  if constexpr (detail::takes_bools<op::reduce_any, X>())
    return detail::reduce_by<op::reduce_any, void, K>(&detail::add_reduce_any, x, a, keep, w);
  else
    return detail::refused();
}
/// The same with axes known only at run time: `reduce_any(x, {0, 2})`.
template <ext::expression X, detail::keep_choice Keep = detail::drop_axes,
          class K = ext::kernels_for<X>>
auto reduce_any(const X& x, const axes& a, Keep keep = {}, ext::source_location w = ext::here()) {
  return reduce_any<X, axes, Keep, K>(x, a, keep, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::misplaced_axes<Given...>) detail::refused
    reduce_any(const X&, const Given&...) {
  detail::refuse_axes<op::reduce_any, detail::got<X>, detail::got<Given>...>();
  return {};
}
/// @endcond
}  // namespace deft
