// SPDX-License-Identifier: Apache-2.0
// deft/op/squeeze.hpp: a tensor without axes of extent 1; a reshape.
#pragma once
#include <deft/op/base/reduction.hpp>
#include <deft/op/reshape.hpp>

namespace deft::op {
struct squeeze;  ///< a reshape; only messages use this name
}

namespace deft {

namespace detail {
/// `d` without these axes (ascending); false if one is known not to have extent 1.
constexpr bool without_axes(const dims& d, const dims& axes, dims& out) {
  out = {};
  for (int i = 0; i < d.n; ++i)
    if (!axes.contains(i))
      out.push_back(d.e[i]);
    else if (d.e[i] != 1 && d.e[i] != dyn)
      return false;
  return true;
}
constexpr dims axes_of_one(const dims& d) {
  dims axes;
  for (int i = 0; i < d.n; ++i)
    if (d.e[i] == 1) axes.push_back(i);
  return axes;
}
template <class Shape, class Axes>
struct squeezed : typed_shape<squeezed<Shape, Axes>> {
  static constexpr bool make(dims& out) {
    dims axes = axes_of_one(Shape::value);
    if constexpr (is_axis_type<Axes>)
      if (!op::normalize_axes(Axes::value, Shape::value.n, axes)) return false;
    return without_axes(Shape::value, axes, out);
  }
};
template <class Shape, class Axes>
inline constexpr bool can_squeeze = squeezed<Shape, Axes>::possible;
/// `given`: nullptr: all that are known to have extent 1.
any_tensor squeeze_checked(const any_tensor& x, const dims* given, source_location w);
}  // namespace detail

/// x without its axes of extent 1: of all that its type, or the graph where x has none, knows to
/// have that extent, or of those given: for x of (?,1,3), `squeeze(x, axis<1>)` is (?,3). An axis
/// that is given and has another extent is a compile error or throws invalid_argument, in the run
/// where only that knows.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          class K = ext::kernels_for<X>>
auto squeeze(const X& x, const A& a = {}, ext::source_location w = ext::here()) {
  if constexpr (std::integral<A> || std::same_as<A, keepdims_t>) {
    static_assert(detail::takes<op::squeeze, detail::got<X>, A>,
                  "[squeeze] expects axes, and got something else: squeeze(x, axis<0>), or "
                  "squeeze(x, axes{0}) where they are known only at run time");
    return detail::refused();
  } else if constexpr (std::same_as<A, axes>) {
    return detail::squeeze_checked(any_tensor(x), &a.value, w);
  } else if constexpr (!ext::typed_expression<X>) {
    if constexpr (detail::is_axis_type<A>)
      return detail::squeeze_checked(x, &A::value, w);
    else
      return detail::squeeze_checked(x, nullptr, w);
  } else if constexpr (!detail::can_squeeze<ext::shape_type_of<X>, A>) {
    static_assert(detail::takes<op::squeeze, detail::got<X>, A>,
                  "[squeeze] expects axes of extent 1 within the tensor's rank, each once");
    return detail::refused();
  } else {
    using S = ext::shape_type_of<X>;
    const dims all = detail::axes_of_one(S::value);
    const dims* chosen = &all;
    if constexpr (detail::is_axis_type<A>) chosen = &A::value;
    return ext::tensor_of<ext::value_type_of<X>, detail::squeezed<S, A>>(
        detail::squeeze_checked(any_tensor(detail::any_lower<K>(x, w)), chosen, w).handle());
  }
}

}  // namespace deft
