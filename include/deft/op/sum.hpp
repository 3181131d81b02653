// SPDX-License-Identifier: Apache-2.0
// deft/op/sum.hpp: sums over all or some axes; integers wrap.
#pragma once
#include <deft/op/base/reduction.hpp>

namespace deft::op {
struct sum : reduction {
  static constexpr std::string_view name = "sum";
  static constexpr fold_kind folds = fold_kind::sum;

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz) {
    return detail::spread(dz, n.template in<0>(), n.attr());
  }
};
}  // namespace deft::op

namespace deft {
/// The sum of numbers over all axes, `sum(x)`, or over some, `sum(x, axis<0, -1>)`, in the dtype of
/// x; integers wrap. Summed axes are dropped, or kept with extent 1 if `keepdims` is the last
/// argument. `sum(x, axes{0, 2})` takes axes known only at run time and returns an any_tensor. The
/// sum of no elements is 0. Throws invalid_argument for axes out of range or given twice.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          detail::keep_choice Keep = detail::drop_axes, class K = ext::kernels_for<X>>
auto sum(const X& x, const A& a = {}, Keep keep = {}, ext::source_location w = ext::here()) {
  if constexpr (!detail::is_numeric_expression<X>) {
    static_assert(detail::takes<op::sum, detail::got<X>>,
                  "[sum] expects a tensor of numbers, and got bool or "
                  "strings: use cast<float>(x) of bool");
    return detail::refused();
  } else
    return detail::reduce<op::sum, K>(x, a, keep, w);
}
/// The same with axes known only at run time: `sum(x, {0, 2})`.
template <ext::expression X, detail::keep_choice Keep = detail::drop_axes,
          class K = ext::kernels_for<X>>
auto sum(const X& x, const axes& a, Keep keep = {}, ext::source_location w = ext::here()) {
  return sum<X, axes, Keep, K>(x, a, keep, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::misplaced_axes<Given...>) detail::refused
    sum(const X&, const Given&...) {
  detail::refuse_axes<op::sum, detail::got<X>, detail::got<Given>...>();
  return {};
}
/// @endcond
}  // namespace deft
