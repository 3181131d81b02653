// SPDX-License-Identifier: Apache-2.0
// deft/op/max.hpp: the largest element over all or some axes; NaN goes through, and a tie's
// gradient goes to the first.
#pragma once
#include <deft/op/base/reduction.hpp>

namespace deft::op {
struct max : reduction {
  static constexpr std::string_view name = "max";
  static constexpr fold_kind folds = fold_kind::max;

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};

/// The position of a maximum over `axes`: true at the first of the largest elements (the first NaN,
/// if there is one), in row-major order. Used by the gradient of max only.
struct first_max {
  static constexpr std::string_view name = "first_max";
  static constexpr int arity = 1;
  dims axes;
  static constexpr auto fields = field_list(field{"axes", &first_max::axes});

  tensor_type infer(std::span<const tensor_type> in) const;
};
}  // namespace deft::op

namespace deft {
/// The largest element over all axes, or some; arguments as for `sum`. NaN if any element is NaN.
/// Throws invalid_argument for axes out of range or given twice, and where there are no elements.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          detail::keep_choice Keep = detail::drop_axes, class K = ext::kernels_for<X>>
auto max(const X& x, const A& a = {}, Keep keep = {}, ext::source_location w = ext::here()) {
  if constexpr (!detail::is_numeric_expression<X>) {
    static_assert(detail::takes<op::max, detail::got<X>>,
                  "[max] expects a tensor of numbers, and got bool or "
                  "strings: use cast<float>(x) of bool");
    return detail::refused();
  } else
    return detail::reduce<op::max, K>(x, a, keep, w);
}
/// The same with axes known only at run time: `max(x, {0, 2})`.
template <ext::expression X, detail::keep_choice Keep = detail::drop_axes,
          class K = ext::kernels_for<X>>
auto max(const X& x, const axes& a, Keep keep = {}, ext::source_location w = ext::here()) {
  return max<X, axes, Keep, K>(x, a, keep, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::misplaced_axes<Given...>) detail::refused
    max(const X&, const Given&...) {
  detail::refuse_axes<op::max, detail::got<X>, detail::got<Given>...>();
  return {};
}
/// @endcond
}  // namespace deft

#include <deft/op/where.hpp>
template <class N>
auto deft::op::max::grad(const N& n, any_tensor dz) {
  const output in[] = {n.template in<0>().handle()};
  auto first = detail::apply_any(first_max{n.attr().axes}, in, {});
  return deft::where(first, detail::spread(dz, n.template in<0>(), n.attr()), 0);
}
