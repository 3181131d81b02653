// SPDX-License-Identifier: Apache-2.0
// deft/op/move_axis.hpp: axes at other places among the others; a transpose.
#pragma once
#include <deft/op/transpose.hpp>

namespace deft::op {
struct move_axis;  ///< a transpose; only messages use this name
}

namespace deft {

namespace detail {
/// The permutation that brings axes `from` to `to` and leaves the others in their order; false
/// unless both are as many, in range, each once.
constexpr bool moved_axes(const dims& from, const dims& to, int rank, dims& perm) {
  dims sorted;
  perm = dims::filled(rank, -1);
  if (from.n != to.n || !op::normalize_axes(from, rank, sorted)) return false;
  dims taken = sorted;
  if (!op::normalize_axes(to, rank, sorted)) return false;
  for (int i = 0; i < from.n; ++i)
    perm.e[normalize_axis(to.e[i], rank)] = normalize_axis(from.e[i], rank);
  for (int i = 0, next = 0; i < rank; ++i) {
    if (perm.e[i] >= 0) continue;
    while (taken.contains(next)) ++next;
    perm.e[i] = next++;
  }
  return true;
}
template <class Shape, class From, class To>
struct move_perm : typed_shape<move_perm<Shape, From, To>> {
  static constexpr bool make(dims& out) {
    return moved_axes(From::value, To::value, Shape::value.n, out);
  }
};
template <class Shape, class From, class To>
inline constexpr bool can_move = move_perm<Shape, From, To>::possible;
any_tensor move_checked(const any_tensor& x, const dims& from, const dims& to, source_location w);
}  // namespace detail

/// x with the axes `from` at the places `to`, and the others in their order, as numpy.moveaxis: for
/// x of (2,3,4), `move_axis(x, axis<0>, axis<-1>)` is (3,4,2).
template <ext::expression X, int... From, int... To, class K = ext::kernels_for<X>>
auto move_axis(const X& x, axis_t<From...> from, axis_t<To...> to,
               ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    if constexpr (!detail::can_move<S, axis_t<From...>, axis_t<To...>>) {
      static_assert(
          detail::takes<op::move_axis, detail::got<X>, axis_t<From...>, axis_t<To...>>,
          "[move_axis] expects as many axes as places, within the tensor's rank, each once");
      return detail::refused();
    } else {
      using P = detail::move_perm<S, axis_t<From...>, axis_t<To...>>;
      return ext::tensor_of<ext::value_type_of<X>, detail::transposed<S, P>>(
          detail::apply<K>(op::transpose{P::value}, w, x).handle());
    }
  } else
    return detail::move_checked(x, from.value, to.value, w);
}
/// The same with axes known only at run time. Throws invalid_argument unless there are as many axes
/// as places, in range, each once.
template <ext::expression X, class K = ext::kernels_for<X>>
any_tensor move_axis(const X& x, const axes& from, const axes& to,
                     ext::source_location w = ext::here()) {
  return detail::move_checked(any_tensor(x), from.value, to.value, w);
}
/// @cond refused
template <ext::expression X, class... Given>
requires(sizeof...(Given) < 2 || detail::starts_with_number<Given...>) detail::refused
    move_axis(const X&, const Given&...) {
  static_assert(detail::takes<op::move_axis, detail::got<X>, detail::got<Given>...>,
                "[move_axis] expects axes and their places, and got numbers, or less: move_axis(x, "
                "axis<0>, axis<-1>), or move_axis(x, axes{0}, axes{-1}) where they are known only "
                "at run time");
  return {};
}
/// @endcond

}  // namespace deft
