// SPDX-License-Identifier: Apache-2.0
// deft/op/roll.hpp: elements moved along an axis, the last ones to its front; slices, concatenated.
#pragma once
#include <deft/op/extents.hpp>

namespace deft::op {
struct roll;  ///< two slices and a concat; only messages use this name
}

namespace deft {

namespace detail {
template <class Shape, int A>
inline constexpr bool can_roll = normalize_axis(A, Shape::value.n) >= 0;
any_tensor roll_checked(const any_tensor& x, const size_argument& shift, const dims& given,
                        source_location w);
/// Of all elements in row-major order.
any_tensor roll_elements(const any_tensor& x, const size_argument& shift, source_location w);
}  // namespace detail

/// x with each element `shift` places further along an axis, as numpy.roll: those that leave it at
/// its end come in again at its front: `roll(x, 1, axis<0>)` of {1, 2, 3} is {3, 1, 2}. The shift
/// is a number, which may be negative, or an int32 or int64 scalar of the graph.
template <ext::expression X, int A, class K = ext::kernels_for<X>>
auto roll(const X& x, const detail::size_argument& shift, axis_t<A> a,
          ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    if constexpr (!detail::can_roll<S, A>) {
      static_assert(detail::takes<op::roll, detail::got<X>, axis_t<A>>,
                    "[roll] expects an axis within the tensor's rank");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, S>(
          detail::roll_checked(any_tensor(detail::any_lower<K>(x, w)), shift, a.value, w).handle());
  } else
    return detail::roll_checked(x, shift, a.value, w);
}
/// Along an axis known only at run time. Throws invalid_argument unless there is one, in range.
template <ext::expression X, class K = ext::kernels_for<X>>
any_tensor roll(const X& x, const detail::size_argument& shift, const axes& a,
                ext::source_location w = ext::here()) {
  return detail::roll_checked(any_tensor(x), shift, a.value, w);
}
/// In row-major order, whatever the shape.
template <ext::expression X, class K = ext::kernels_for<X>>
auto roll(const X& x, const detail::size_argument& shift, ext::source_location w = ext::here()) {
  const any_tensor all = detail::roll_elements(any_tensor(detail::any_lower<K>(x, w)), shift, w);
  if constexpr (ext::typed_expression<X>)
    return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(all.handle());
  else
    return all;
}
/// @cond refused
template <ext::expression X, std::integral Shift, std::integral Axis>
detail::refused roll(const X&, Shift, Axis) {
  static_assert(detail::takes<op::roll, detail::got<X>, Shift, Axis>,
                "[roll] expects an axis, and got a number: roll(x, 1, axis<0>), or roll(x, 1, "
                "axes{0}) where it is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft
