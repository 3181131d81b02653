// SPDX-License-Identifier: Apache-2.0
// deft/op/swap_axes.hpp: two axes that change places; a transpose.
#pragma once
#include <deft/op/transpose.hpp>

namespace deft::op {
struct swap_axes;  ///< a transpose; only messages use this name
}

namespace deft {

namespace detail {
/// The permutation that exchanges two axes; false unless there are two, in range.
constexpr bool swapped_axes(const dims& two, int rank, dims& perm) {
  perm = op::all_axes_of(rank);
  if (two.n != 2) return false;
  const int a = normalize_axis(two.e[0], rank), b = normalize_axis(two.e[1], rank);
  if (a < 0 || b < 0) return false;
  perm.e[a] = b;
  perm.e[b] = a;
  return true;
}
template <class Shape, class Axes>
struct swap_perm : typed_shape<swap_perm<Shape, Axes>> {
  static constexpr bool make(dims& out) { return swapped_axes(Axes::value, Shape::value.n, out); }
};
template <class Shape, class Axes>
inline constexpr bool can_swap = swap_perm<Shape, Axes>::possible;
any_tensor swap_checked(const any_tensor& x, const dims& two, source_location w);
}  // namespace detail

/// x with two of its axes exchanged, as numpy.swapaxes: for x of (2,3,4), `swap_axes(x, axis<0,
/// 2>)` is (4,3,2).
template <ext::expression X, int... A, class K = ext::kernels_for<X>>
auto swap_axes(const X& x, axis_t<A...> two, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    if constexpr (!detail::can_swap<S, axis_t<A...>>) {
      static_assert(detail::takes<op::swap_axes, detail::got<X>, axis_t<A...>>,
                    "[swap_axes] expects two axes within the tensor's rank, and got others");
      return detail::refused();
    } else {
      using P = detail::swap_perm<S, axis_t<A...>>;
      return ext::tensor_of<ext::value_type_of<X>, detail::transposed<S, P>>(
          detail::apply<K>(op::transpose{P::value}, w, x).handle());
    }
  } else
    return detail::swap_checked(x, two.value, w);
}
/// The same with axes known only at run time. Throws invalid_argument unless there are two, in
/// range.
template <ext::expression X, class K = ext::kernels_for<X>>
any_tensor swap_axes(const X& x, const axes& two, ext::source_location w = ext::here()) {
  return detail::swap_checked(any_tensor(x), two.value, w);
}
/// @cond refused
template <ext::expression X, class... Given>
requires(sizeof...(Given) == 0 || detail::starts_with_number<Given...>) detail::refused
    swap_axes(const X&, const Given&...) {
  static_assert(detail::takes<op::swap_axes, detail::got<X>, detail::got<Given>...>,
                "[swap_axes] expects axes, and got none, or numbers: swap_axes(x, axis<0, 1>), or "
                "swap_axes(x, axes{0, 1}) where they are known only at run time");
  return {};
}
/// @endcond

}  // namespace deft
