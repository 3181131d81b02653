// SPDX-License-Identifier: Apache-2.0
// deft/op/expand_dims.hpp: new axes of extent 1; a reshape that keeps every extent it has.
#pragma once
#include <deft/op/base/reduction.hpp>
#include <deft/op/reshape.hpp>

namespace deft::op {
struct expand_dims;  ///< a reshape; only messages use this name
}

namespace deft {

namespace detail {
/// Axes of the result that are new.
template <class Shape, class Axes>
struct expanded_axes : typed_shape<expanded_axes<Shape, Axes>> {
  static constexpr int rank = Shape::value.n + Axes::value.n;
  static constexpr bool make(dims& out) {
    return rank <= max_rank && op::normalize_axes(Axes::value, rank, out);
  }
};
template <class Shape, class Axes>
inline constexpr bool can_expand = expanded_axes<Shape, Axes>::possible;
template <class Shape, class Axes>
struct expanded_shape {
  static constexpr dims value = op::with_axes(Shape::value, expanded_axes<Shape, Axes>::value);
};
any_tensor expand_checked(const any_tensor& x, const dims& given, source_location w);
}  // namespace detail

/// x with new axes of extent 1, numbered as in the result: for x of (n,10), `expand_dims(x,
/// axis<1>)` is (n,1,10), and `expand_dims(x, axis<-1>)` is (n,10,1).
template <ext::expression X, int... A, class K = ext::kernels_for<X>>
auto expand_dims(const X& x, axis_t<A...> a, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    if constexpr (!detail::can_expand<S, axis_t<A...>>) {
      static_assert(detail::takes<op::expand_dims, detail::got<X>, axis_t<A...>>,
                    "[expand_dims] expects axes within the result's rank, each once");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, detail::expanded_shape<S, axis_t<A...>>>(
          detail::expand(any_tensor(x), detail::expanded_axes<S, axis_t<A...>>::value, w).handle());
  } else
    return detail::expand_checked(x, a.value, w);
}
/// The same with axes known only at run time.
/// Throws invalid_argument if one is out of range of the result or given twice.
template <ext::expression X, class K = ext::kernels_for<X>>
any_tensor expand_dims(const X& x, const axes& a, ext::source_location w = ext::here()) {
  return detail::expand_checked(any_tensor(x), a.value, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || sizeof...(Given) == 0 ||
         detail::starts_with_number<Given...>) detail::refused
    expand_dims(const X&, const Given&...) {
  static_assert(detail::takes<op::expand_dims, detail::got<X>, detail::got<Given>...>,
                "[expand_dims] expects an axis, and got none, or a number: expand_dims(x, "
                "axis<1>), or expand_dims(x, axes{1}) where it is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft
