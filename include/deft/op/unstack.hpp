// SPDX-License-Identifier: Apache-2.0
// deft/op/unstack.hpp: the tensors along an axis; slices without it.
#pragma once
#include <array>
#include <deft/op/argmax.hpp>
#include <vector>

namespace deft::op {
struct unstack;  ///< slices; only messages use this name
}

namespace deft {

namespace detail {
template <class Shape, int A>
inline constexpr bool can_unstack = [] {
  const int axis = normalize_axis(A, Shape::value.n);
  return axis >= 0 && Shape::value.e[axis] != dyn;
}();

/// Number `i` along an axis counted from the front.
any_tensor unstack_part(const any_tensor& x, int axis, std::int64_t i, source_location w);
std::vector<any_tensor> add_unstack(const any_tensor& x, const dims& given, source_location w);
}  // namespace detail

/// The tensors along an axis, without it: for x of (?,20,8), `unstack(x, axis<1>)` are 20 tensors
/// of (?,8), in a std::array where x has a type, in a std::vector otherwise. Throws
/// invalid_argument unless the axis' extent is known.
template <ext::expression X, int A, class K = ext::kernels_for<X>>
auto unstack(const X& x, axis_t<A> a, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    if constexpr (!detail::can_unstack<S, A>) {
      static_assert(detail::takes<op::unstack, detail::got<X>, axis_t<A>>,
                    "[unstack] expects an axis in range whose extent is known");
      return std::vector<detail::refused>();
    } else {
      using part = ext::tensor_of<ext::value_type_of<X>, detail::shape_without_axis<S, A>>;
      constexpr int axis = ext::normalize_axis(A, S::value.n);
      constexpr auto n = static_cast<std::size_t>(S::value.e[axis]);
      const any_tensor whole(detail::any_lower<K>(x, w));
      return [&]<std::size_t... Nth>(std::index_sequence<Nth...>) {
        return std::array<part, n>{
            part(detail::unstack_part(whole, axis, std::int64_t{Nth}, w).handle())...};
      }
      (std::make_index_sequence<n>());
    }
  } else
    return detail::add_unstack(any_tensor(x), a.value, w);
}
/// The same with an axis known only at run time.
template <ext::expression X, class K = ext::kernels_for<X>>
std::vector<any_tensor> unstack(const X& x, const axes& a, ext::source_location w = ext::here()) {
  return detail::add_unstack(any_tensor(x), a.value, w);
}
/// @cond refused
template <ext::expression X, class... Given>
requires(sizeof...(Given) == 0 || detail::starts_with_number<Given...>)
    std::vector<detail::refused> unstack(const X&, const Given&...) {
  static_assert(detail::takes<op::unstack, detail::got<X>, Given...>,
                "[unstack] expects an axis, and got none, or a number: unstack(x, axis<0>), or "
                "unstack(x, axes{0}) where it is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft
