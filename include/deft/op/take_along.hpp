// SPDX-License-Identifier: Apache-2.0
// deft/op/take_along.hpp: elements by indices along an axis, one for each place.
#pragma once
#include <deft/op/gather.hpp>

namespace deft::op {
struct take_along;  ///< a gather; only messages use this name
}

namespace deft {

namespace detail {
template <class X, class Indices, int A>
struct taken_along : typed_shape<taken_along<X, Indices, A>> {
  static constexpr bool make(dims& out) {
    const int axis = normalize_axis(A, X::value.n);
    if (axis < 0 || X::value.n != Indices::value.n) return false;
    dims all = X::value;
    all.e[axis] = 1;
    return broadcast(all, Indices::value, out);
  }
};
/// Where the elements are in x, counted row by row, that `indices` name along an axis: -1 for an
/// index out of range.
any_tensor flat_places(const any_tensor& x, const any_tensor& indices, int axis, source_location w);
any_tensor add_take_along(const any_tensor& x, const any_tensor& indices, const dims& given,
                          source_location w);
}  // namespace detail

/// For each place the element of x whose index along an axis is in `indices`, int32 or int64, at
/// this place: for x and indices of (2,3), y(i,j) of `take_along(x, indices, axis<1>)` is
/// x(i, indices(i,j)). x and indices have the same rank, and are broadcast along the other axes;
/// the result has the extent of the indices along this one. Gradients of one element add up. An
/// index out of range makes the run throw out_of_range.
template <ext::expression X, ext::expression Indices, int A, class K = ext::kernels_for<X>>
auto take_along(const X& x, const Indices& indices, axis_t<A> a,
                ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X> && ext::typed_expression<Indices>) {
    using shape = detail::taken_along<ext::shape_type_of<X>, ext::shape_type_of<Indices>, A>;
    if constexpr (!detail::gathers_by<Indices>) {
      static_assert(detail::takes<op::take_along, detail::got<X>, detail::got<Indices>>,
                    "[take_along] expects indices of int32 or int64, and got another dtype: use "
                    "cast<std::int64_t>(i)");
      return detail::refused();
    } else if constexpr (!shape::possible) {
      static_assert(detail::takes<op::take_along, detail::got<X>, detail::got<Indices>, axis_t<A>>,
                    "[take_along] expects an axis of both tensors, and extents that can be "
                    "broadcast along the others");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, shape>(
          detail::add_take_along(any_tensor(detail::any_lower<K>(x, w)),
                                 any_tensor(detail::any_lower<K>(indices, w)), a.value, w)
              .handle());
  } else
    return detail::add_take_along(any_tensor(x), any_tensor(indices), a.value, w);
}
/// The same with an axis known only at run time.
/// Throws invalid_argument unless `a` holds exactly one axis, in range.
template <ext::expression X, ext::expression Indices>
any_tensor take_along(const X& x, const Indices& indices, const axes& a,
                      ext::source_location w = ext::here()) {
  return detail::add_take_along(any_tensor(x), any_tensor(indices), a.value, w);
}
/// @cond refused
template <ext::expression X, ext::expression Indices, class... Given>
requires(sizeof...(Given) == 0 || detail::starts_with_number<Given...>) detail::refused
    take_along(const X&, const Indices&, const Given&...) {
  static_assert(detail::takes<op::take_along, detail::got<X>, detail::got<Indices>>,
                "[take_along] expects an axis, and got none, or a number: take_along(x, i, "
                "axis<1>), or take_along(x, i, axes{1}) where it is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft
