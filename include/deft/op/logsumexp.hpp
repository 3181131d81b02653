// SPDX-License-Identifier: Apache-2.0
// deft/op/logsumexp.hpp: log(sum(exp(x))) over all or some axes, which does not overflow.
#pragma once
#include <deft/op/base/reduction.hpp>

namespace deft::op {
/// Only messages use this name.
struct logsumexp {
  static constexpr std::string_view name = "logsumexp";
};
}  // namespace deft::op

namespace deft {

namespace detail {
any_tensor add_logsumexp(const any_tensor& x, const axes* given, bool keep, source_location w);
}  // namespace detail

/// log(sum(exp(x))) of floating numbers over all axes, or some; arguments as for `sum`. Elements
/// are compared with the largest one first, so that nothing overflows. Of no elements, and of
/// elements that are all -inf, it is -inf, with a gradient of 0; the gradient of others is their
/// softmax.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          detail::keep_choice Keep = detail::drop_axes, class K = ext::kernels_for<X>>
auto logsumexp(const X& x, const A& a = {}, Keep keep = {}, ext::source_location w = ext::here()) {
  if constexpr (detail::takes_floating<op::logsumexp, X>())
    return detail::reduce_by<op::logsumexp, void, K>(&detail::add_logsumexp, x, a, keep, w);
  else
    return detail::refused();
}
/// The same with axes known only at run time: `logsumexp(x, {0, 2})`.
template <ext::expression X, detail::keep_choice Keep = detail::drop_axes,
          class K = ext::kernels_for<X>>
auto logsumexp(const X& x, const axes& a, Keep keep = {}, ext::source_location w = ext::here()) {
  return logsumexp<X, axes, Keep, K>(x, a, keep, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::misplaced_axes<Given...>) detail::refused
    logsumexp(const X&, const Given&...) {
  detail::refuse_axes<op::logsumexp, detail::got<X>, detail::got<Given>...>();
  return {};
}
/// @endcond
}  // namespace deft
