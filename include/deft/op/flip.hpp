// SPDX-License-Identifier: Apache-2.0
// deft/op/flip.hpp: elements in reverse order along axes; a slice with a step of -1.
#pragma once
#include <deft/op/base/reduction.hpp>
#include <deft/op/slice.hpp>

namespace deft::op {
struct flip;  ///< a slice; only messages use this name
}

namespace deft {

namespace detail {
template <class X, class A>
inline constexpr bool can_flip = true;
template <typed_expression X, class A>
inline constexpr bool can_flip<X, A> = axes_in_range<shape_type_of<X>, A>;
/// Along `given` axes; nullptr: all.
any_tensor flip_checked(const any_tensor& x, const axes* given, source_location w);
}  // namespace detail

/// x in reverse order along the given axes, or all of them, as numpy.flip: `flip(x, axis<1>)`.
/// Throws invalid_argument for axes out of range or given twice.
template <ext::expression X, detail::axes_choice A = detail::every_axis,
          class K = ext::kernels_for<X>>
auto flip(const X& x, const A& a = {}, ext::source_location w = ext::here()) {
  if constexpr (std::integral<A> || std::same_as<A, keepdims_t>) {
    static_assert(detail::takes<op::flip, detail::got<X>, A>,
                  "[flip] expects axes, and got something else: flip(x, axis<0>), or flip(x, "
                  "axes{0}) where they are known only at run time");
    return detail::refused();
  } else if constexpr (!detail::can_flip<X, A>) {
    static_assert(detail::takes<op::flip, detail::got<X>, A>,
                  "[flip] expects axes within the tensor's rank, each once");
    return detail::refused();
  } else {
    any_tensor all(detail::any_lower<K>(x, w));
    if constexpr (std::same_as<A, axes>) {
      all = detail::flip_checked(all, &a, w);
    } else if constexpr (detail::is_axis_type<A>) {
      const axes given(A::value);
      all = detail::flip_checked(all, &given, w);
    } else {
      all = detail::flip_checked(all, nullptr, w);
    }
    if constexpr (ext::typed_expression<X>)
      return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(all.handle());
    else
      return all;
  }
}

}  // namespace deft
