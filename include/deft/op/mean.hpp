// SPDX-License-Identifier: Apache-2.0
// deft/op/mean.hpp: means over all or some axes.
#pragma once
#include <deft/op/base/reduction.hpp>

namespace deft::op {
struct mean : reduction {
  static constexpr std::string_view name = "mean";
  static constexpr fold_kind folds = fold_kind::mean;

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {
/// The mean over all axes, or some, of a float or double tensor; arguments as for `sum`. The mean
/// of no elements is NaN. Throws invalid_argument for integers (a compile error where the dtype is
/// known) and for axes out of range or given twice.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          detail::keep_choice Keep = detail::drop_axes, class K = ext::kernels_for<X>>
auto mean(const X& x, const A& a = {}, Keep keep = {}, ext::source_location w = ext::here()) {
  if constexpr (!detail::is_floating_expression<X>) {
    static_assert(detail::takes<op::mean, detail::got<X>>,
                  "[mean] expects a floating tensor, and got another dtype: use cast<float>(x)");
    return detail::refused();
  } else
    return detail::reduce<op::mean, K>(x, a, keep, w);
}
/// The same with axes known only at run time: `mean(x, {0, 2})`.
template <ext::expression X, detail::keep_choice Keep = detail::drop_axes,
          class K = ext::kernels_for<X>>
auto mean(const X& x, const axes& a, Keep keep = {}, ext::source_location w = ext::here()) {
  return mean<X, axes, Keep, K>(x, a, keep, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::misplaced_axes<Given...>) detail::refused
    mean(const X&, const Given&...) {
  detail::refuse_axes<op::mean, detail::got<X>, detail::got<Given>...>();
  return {};
}
/// @endcond
}  // namespace deft

#include <deft/op/cast.hpp>
#include <deft/op/div.hpp>
#include <deft/op/size_of.hpp>
template <class N>
auto deft::op::mean::grad(const N& n, any_tensor dz) {
  auto x = n.template in<0>();
  auto count = deft::cast(deft::size_of(x, deft::axes(n.attr().axes)), dz.type());
  return detail::spread(dz / count, x, n.attr());
}
