// SPDX-License-Identifier: Apache-2.0
// deft/op/flatten.hpp: a tensor whose last axes are one; a reshape.
#pragma once
#include <deft/op/reshape.hpp>

namespace deft::op {
struct flatten;  ///< a reshape; only messages use this name
}

namespace deft {

namespace detail {
/// `d` with its axes from `axis` on as one.
constexpr bool flattened(const dims& d, std::int64_t axis, dims& out) {
  out = {};
  // A scalar becomes a vector.
  const int first = d.n == 0 && (axis == 0 || axis == -1) ? 0 : normalize_axis(axis, d.n);
  if (first < 0) return false;
  std::int64_t n = 1;
  for (int i = 0; i < d.n; ++i)
    if (i < first)
      out.push_back(d.e[i]);
    else
      n = n == dyn || d.e[i] == dyn ? dyn : n * d.e[i];
  out.push_back(n);
  return is_sound(out);
}
template <class Shape, int A>
struct flattened_shape : typed_shape<flattened_shape<Shape, A>> {
  static constexpr bool make(dims& out) { return flattened(Shape::value, A, out); }
};
template <class Shape, int A>
inline constexpr bool can_flatten = flattened_shape<Shape, A>::possible;
any_tensor flatten_checked(const any_tensor& x, const dims& given, source_location w);
}  // namespace detail

/// The elements of x in row-major order, with the axes from `axis<A>` on as one: for x of (?,4,5),
/// `flatten(x, axis<1>)` is (?,20).
template <ext::expression X, int A, class K = ext::kernels_for<X>>
auto flatten(const X& x, axis_t<A> a, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    if constexpr (!detail::can_flatten<S, A>) {
      static_assert(detail::takes<op::flatten, detail::got<X>, axis_t<A>>,
                    "[flatten] expects an axis within the tensor's rank");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, detail::flattened_shape<S, A>>(
          detail::flatten_checked(any_tensor(detail::any_lower<K>(x, w)), a.value, w).handle());
  } else
    return detail::flatten_checked(x, a.value, w);
}
/// A vector of all elements.
template <ext::expression X, class K = ext::kernels_for<X>>
auto flatten(const X& x, ext::source_location w = ext::here()) {
  return flatten<X, 0, K>(x, axis<0>, w);
}
/// From an axis on that is known only at run time. Throws invalid_argument unless there is one, in
/// range.
template <ext::expression X, class K = ext::kernels_for<X>>
any_tensor flatten(const X& x, const axes& a, ext::source_location w = ext::here()) {
  return detail::flatten_checked(any_tensor(x), a.value, w);
}
/// @cond refused
template <ext::expression X, class... Given>
requires(sizeof...(Given) > 0 && detail::starts_with_number<Given...>) detail::refused
    flatten(const X&, const Given&...) {
  static_assert(detail::takes<op::flatten, detail::got<X>, detail::got<Given>...>,
                "[flatten] expects an axis, and got a number: flatten(x, axis<1>), or flatten(x, "
                "axes{1}) where it is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft
