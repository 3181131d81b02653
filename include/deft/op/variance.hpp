// SPDX-License-Identifier: Apache-2.0
// deft/op/variance.hpp: variances and standard deviations over all or some axes.
#pragma once
#include <deft/op/base/reduction.hpp>

namespace deft::op {
/// Only messages use these names.
struct variance {
  static constexpr std::string_view name = "variance";
};
struct standard_deviation {
  static constexpr std::string_view name = "standard_deviation";
};
}  // namespace deft::op

namespace deft {

namespace detail {
any_tensor add_variance(const any_tensor& x, const axes* given, bool keep, source_location w);
any_tensor add_deviation(const any_tensor& x, const axes* given, bool keep, source_location w);
any_tensor add_sample_variance(const any_tensor& x, const axes* given, bool keep,
                               source_location w);
any_tensor add_sample_deviation(const any_tensor& x, const axes* given, bool keep,
                                source_location w);
}  // namespace detail

/// The mean of the squares of what floating numbers differ from their mean by, over all axes, or
/// some; arguments as for `sum`. Of one element it is 0, of none NaN.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          detail::keep_choice Keep = detail::drop_axes, class K = ext::kernels_for<X>>
auto variance(const X& x, const A& a = {}, Keep keep = {}, ext::source_location w = ext::here()) {
  if constexpr (detail::takes_floating<op::variance, X>())
    return detail::reduce_by<op::variance, void, K>(&detail::add_variance, x, a, keep, w);
  else
    return detail::refused();
}
/// The same with axes known only at run time: `variance(x, {0, 2})`.
template <ext::expression X, detail::keep_choice Keep = detail::drop_axes,
          class K = ext::kernels_for<X>>
auto variance(const X& x, const axes& a, Keep keep = {}, ext::source_location w = ext::here()) {
  return variance<X, axes, Keep, K>(x, a, keep, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::misplaced_axes<Given...>) detail::refused
    variance(const X&, const Given&...) {
  detail::refuse_axes<op::variance, detail::got<X>, detail::got<Given>...>();
  return {};
}
/// @endcond
/// The variance of what x is a sample of, as far as that tells: the sum of these squares of n
/// elements divided by n - 1. Of one element it is NaN.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          detail::keep_choice Keep = detail::drop_axes, class K = ext::kernels_for<X>>
auto sample_variance(const X& x, const A& a = {}, Keep keep = {},
                     ext::source_location w = ext::here()) {
  if constexpr (detail::takes_floating<op::variance, X>())
    return detail::reduce_by<op::variance, void, K>(&detail::add_sample_variance, x, a, keep, w);
  else
    return detail::refused();
}
/// The same with axes known only at run time: `sample_variance(x, {0, 2})`.
template <ext::expression X, detail::keep_choice Keep = detail::drop_axes,
          class K = ext::kernels_for<X>>
auto sample_variance(const X& x, const axes& a, Keep keep = {},
                     ext::source_location w = ext::here()) {
  return sample_variance<X, axes, Keep, K>(x, a, keep, w);
}
/// The square root of the variance. Where that is 0, it has no gradient: NaN.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          detail::keep_choice Keep = detail::drop_axes, class K = ext::kernels_for<X>>
auto standard_deviation(const X& x, const A& a = {}, Keep keep = {},
                        ext::source_location w = ext::here()) {
  if constexpr (detail::takes_floating<op::standard_deviation, X>())
    return detail::reduce_by<op::standard_deviation, void, K>(&detail::add_deviation, x, a, keep,
                                                              w);
  else
    return detail::refused();
}
/// The same with axes known only at run time: `standard_deviation(x, {0, 2})`.
template <ext::expression X, detail::keep_choice Keep = detail::drop_axes,
          class K = ext::kernels_for<X>>
auto standard_deviation(const X& x, const axes& a, Keep keep = {},
                        ext::source_location w = ext::here()) {
  return standard_deviation<X, axes, Keep, K>(x, a, keep, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::misplaced_axes<Given...>) detail::refused
    standard_deviation(const X&, const Given&...) {
  detail::refuse_axes<op::standard_deviation, detail::got<X>, detail::got<Given>...>();
  return {};
}
/// @endcond
/// The square root of the sample's variance.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          detail::keep_choice Keep = detail::drop_axes, class K = ext::kernels_for<X>>
auto sample_standard_deviation(const X& x, const A& a = {}, Keep keep = {},
                               ext::source_location w = ext::here()) {
  if constexpr (detail::takes_floating<op::standard_deviation, X>())
    return detail::reduce_by<op::standard_deviation, void, K>(&detail::add_sample_deviation, x, a,
                                                              keep, w);
  else
    return detail::refused();
}
/// The same with axes known only at run time: `sample_standard_deviation(x, {0, 2})`.
template <ext::expression X, detail::keep_choice Keep = detail::drop_axes,
          class K = ext::kernels_for<X>>
auto sample_standard_deviation(const X& x, const axes& a, Keep keep = {},
                               ext::source_location w = ext::here()) {
  return sample_standard_deviation<X, axes, Keep, K>(x, a, keep, w);
}
}  // namespace deft
