// SPDX-License-Identifier: Apache-2.0
// deft/op/reduce_all.hpp: whether all of some elements of bool are true.
#pragma once
#include <deft/op/base/reduction.hpp>

namespace deft::op {
/// Only messages use this name.
struct reduce_all {
  static constexpr std::string_view name = "reduce_all";
};
}  // namespace deft::op

namespace deft {

namespace detail {
any_tensor add_reduce_all(const any_tensor& x, const axes* given, bool keep, source_location w);
}  // namespace detail

/// Whether all elements of a tensor of bool are true, over all axes, or some; arguments as for
/// `sum`. Of no elements: true.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          detail::keep_choice Keep = detail::drop_axes, class K = ext::kernels_for<X>>
auto reduce_all(const X& x, const A& a = {}, Keep keep = {}, ext::source_location w = ext::here()) {
  if constexpr (detail::takes_bools<op::reduce_all, X>())
    return detail::reduce_by<op::reduce_all, void, K>(&detail::add_reduce_all, x, a, keep, w);
  else
    return detail::refused();
}
/// The same with axes known only at run time: `reduce_all(x, {0, 2})`.
template <ext::expression X, detail::keep_choice Keep = detail::drop_axes,
          class K = ext::kernels_for<X>>
auto reduce_all(const X& x, const axes& a, Keep keep = {}, ext::source_location w = ext::here()) {
  return reduce_all<X, axes, Keep, K>(x, a, keep, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::misplaced_axes<Given...>) detail::refused
    reduce_all(const X&, const Given&...) {
  detail::refuse_axes<op::reduce_all, detail::got<X>, detail::got<Given>...>();
  return {};
}
/// @endcond
}  // namespace deft
