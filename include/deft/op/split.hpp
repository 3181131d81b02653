// SPDX-License-Identifier: Apache-2.0
// deft/op/split.hpp: parts of equal size along an axis; slices.
#pragma once
#include <algorithm>
#include <array>
#include <deft/op/base/shapes.hpp>
#include <vector>

namespace deft::op {
struct split;  ///< slices; only messages use this name
}

namespace deft {

namespace detail {
template <int N, class Shape, int A>
struct split_shape : typed_shape<split_shape<N, Shape, A>> {
  static constexpr bool make(dims& out) {
    out = Shape::value;
    const int axis = normalize_axis(A, out.n);
    if (N < 1 || axis < 0 || out.e[axis] == dyn || out.e[axis] % N != 0) return false;
    out.e[axis] /= N;
    return true;
  }
};
template <int N, class Shape, int A>
inline constexpr bool can_split = split_shape<N, Shape, A>::possible;

/// Part number `i` of `n` along an axis counted from the front, whose extent `n` divides.
any_tensor split_part(const any_tensor& x, int axis, std::int64_t n, std::int64_t i,
                      source_location w);
std::vector<any_tensor> add_split(const any_tensor& x, const dims& given, std::int64_t n,
                                  source_location w);
}  // namespace detail

/// N parts of equal size along an axis: for x of (?,12), `auto [a, b, c] = split<3>(x, axis<1>)`
/// are three tensors of (?,4). Throws invalid_argument unless the axis' extent is known and a
/// multiple of N.
template <int N, ext::expression X, int A, class K = ext::kernels_for<X>>
auto split(const X& x, axis_t<A> a, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    if constexpr (!detail::can_split<N, S, A>) {
      static_assert(detail::takes<op::split, detail::got<X>, axis_t<A>>,
                    "[split] expects an axis in range whose extent is known and a multiple of the "
                    "number of parts");
      return std::array<detail::refused, std::size_t(N < 1 ? 1 : N)>{};
    } else {
      using part = ext::tensor_of<ext::value_type_of<X>, detail::split_shape<N, S, A>>;
      const any_tensor whole(detail::any_lower<K>(x, w));
      return [&]<std::size_t... Nth>(std::index_sequence<Nth...>) {
        return std::array<part, std::size_t{N}>{part(
            detail::split_part(whole, ext::normalize_axis(A, S::value.n), N, std::int64_t{Nth}, w)
                .handle())...};
      }
      (std::make_index_sequence<std::size_t{N}>());
    }
  } else {
    std::array<any_tensor, std::size_t{N}> parts;
    std::ranges::move(detail::add_split(any_tensor(x), a.value, N, w), parts.begin());
    return parts;
  }
}
/// The same where the number of parts is known only at run time, or the axis too:
/// `split(x, axes{1}, n)`. Also throws invalid_argument unless `n` is at least 1 and there is
/// exactly one axis, in range.
/// @{
template <ext::expression X, int A, class K = ext::kernels_for<X>>
std::vector<any_tensor> split(const X& x, axis_t<A> a, std::int64_t n,
                              ext::source_location w = ext::here()) {
  return detail::add_split(any_tensor(x), a.value, n, w);
}
template <ext::expression X, class K = ext::kernels_for<X>>
std::vector<any_tensor> split(const X& x, const axes& a, std::int64_t n,
                              ext::source_location w = ext::here()) {
  return detail::add_split(any_tensor(x), a.value, n, w);
}
/// @}
/// @cond refused
template <int... N, ext::expression X, class... Given>
requires(sizeof...(Given) == 0 || detail::starts_with_number<Given...> ||
         sizeof...(Given) + sizeof...(N) == 1) auto split(const X&, const Given&...) {
  static_assert(
      detail::takes<op::split, detail::got<X>, detail::got<Given>...>,
      "[split] expects the number of parts as an argument of the template, or after the axis: "
      "split<3>(x, axis<1>), or split(x, axis<1>, n) where it is known only at run time");
  if constexpr (sizeof...(N) == 1)
    return std::array<detail::refused, std::size_t{(N, ...)}>{};
  else
    return std::vector<detail::refused>();
}
/// @endcond

}  // namespace deft
