// SPDX-License-Identifier: Apache-2.0
// deft/op/repeat.hpp: each element several times, along an axis; broadcast along a new axis.
#pragma once
#include <deft/op/broadcast_to.hpp>
#include <deft/op/concat.hpp>

namespace deft::op {
struct repeat;  ///< a broadcast_to and a reshape; only messages use this name
}

namespace deft {

namespace detail {
template <std::int64_t N, class Shape, int A>
struct repeated_shape : typed_shape<repeated_shape<N, Shape, A>> {
  static constexpr bool make(dims& out) {
    out = Shape::value;
    const int axis = normalize_axis(A, out.n);
    if (N < 0 || axis < 0) return false;
    if (out.e[axis] != dyn) out.e[axis] = N > max_elements ? -2 : out.e[axis] * N;
    return is_sound(out);
  }
};
template <std::int64_t N, class Shape, int A>
inline constexpr bool can_repeat = repeated_shape<N, Shape, A>::possible;

/// n times along an axis counted from the front: each element, or else all of them in turn.
any_tensor repeat_along(const any_tensor& x, int axis, std::int64_t n, bool each,
                        source_location w);
any_tensor repeat_checked(const any_tensor& x, const dims& given, std::int64_t n,
                          source_location w);
}  // namespace detail

/// Each element of x N times along an axis, as numpy.repeat: `repeat<2>(x, axis<0>)` of {1, 2} is
/// {1, 1, 2, 2}.
template <std::int64_t N, ext::expression X, int A, class K = ext::kernels_for<X>>
auto repeat(const X& x, axis_t<A> a, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    if constexpr (!detail::can_repeat<N, S, A>) {
      static_assert(detail::takes<op::repeat, detail::got<X>, axis_t<A>>,
                    "[repeat] expects a number of times and an axis within the tensor's rank");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, detail::repeated_shape<N, S, A>>(
          detail::repeat_checked(any_tensor(detail::any_lower<K>(x, w)), a.value, N, w).handle());
  } else
    return detail::repeat_checked(x, a.value, N, w);
}
/// The same where the number of times is known only at run time, or the axis too: `repeat(x,
/// axes{0}, n)`. Throws invalid_argument if n is negative, or unless there is one axis, in range.
/// @{
template <ext::expression X, int A, class K = ext::kernels_for<X>>
auto repeat(const X& x, axis_t<A> a, std::int64_t n, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    if constexpr (!detail::can_repeat<1, S, A>) {
      static_assert(detail::takes<op::repeat, detail::got<X>, axis_t<A>>,
                    "[repeat] expects a number of times and an axis within the tensor's rank");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, detail::dyn_along<A, S>>(
          detail::repeat_checked(any_tensor(detail::any_lower<K>(x, w)), a.value, n, w).handle());
  } else
    return detail::repeat_checked(x, a.value, n, w);
}
template <ext::expression X, class K = ext::kernels_for<X>>
any_tensor repeat(const X& x, const axes& a, std::int64_t n, ext::source_location w = ext::here()) {
  return detail::repeat_checked(any_tensor(x), a.value, n, w);
}
/// @}
/// @cond refused
template <ext::expression X, class... Given>
requires(sizeof...(Given) == 0 || detail::starts_with_number<Given...>) detail::refused
    repeat(const X&, const Given&...) {
  static_assert(detail::takes<op::repeat, detail::got<X>, detail::got<Given>...>,
                "[repeat] expects an axis before the number of times: repeat<2>(x, axis<0>), or "
                "repeat(x, axis<0>, n) where the number is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft
