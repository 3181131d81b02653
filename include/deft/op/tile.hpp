// SPDX-License-Identifier: Apache-2.0
// deft/op/tile.hpp: a tensor several times along its axes; broadcast along new axes.
#pragma once
#include <deft/op/repeat.hpp>

namespace deft::op {
struct tile;  ///< a broadcast_to and a reshape; only messages use this name
}

namespace deft {

/// How many times `tile` repeats along each axis, as a type; see copies.
template <std::int64_t... N>
struct copies_t {
  static constexpr dims value{N...};  ///< one number for each of the last axes
};
/// The numbers of times that `tile` repeats along each axis, known at compile time: `tile(x,
/// copies<2, 3>)` of (4,5) is (8,15).
template <std::int64_t... N>
inline constexpr copies_t<N...> copies{};

namespace detail {
/// Like numpy.tile, fewer numbers than axes are for the last of these, and more make new ones.
constexpr bool tiled(const dims& x, const dims& times, dims& out) {
  const int rank = x.n > times.n ? x.n : times.n;
  out = dims::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t e = i <= x.n ? x.e[x.n - i] : 1, n = i <= times.n ? times.e[times.n - i] : 1;
    if (n < 0 || n > max_elements) return false;
    out.e[rank - i] = e == dyn ? (n == 0 ? 0 : dyn) : e * n;
  }
  return is_sound(out);
}
template <class Shape, class Times>
struct tiled_shape : typed_shape<tiled_shape<Shape, Times>> {
  static constexpr bool make(dims& out) { return tiled(Shape::value, Times::value, out); }
};
template <class Shape, class Times>
inline constexpr bool can_tile = tiled_shape<Shape, Times>::possible;
any_tensor tile_checked(const any_tensor& x, const dims& times, source_location w);
}  // namespace detail

/// x as many times along each axis as `copies` says, as numpy.tile: `tile(x, copies<2>)` of {1, 2}
/// is {1, 2, 1, 2}. Fewer numbers than axes are for the last axes; more of them make new axes in
/// front.
template <ext::expression X, std::int64_t... N, class K = ext::kernels_for<X>>
auto tile(const X& x, copies_t<N...> times, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    if constexpr (!detail::can_tile<S, copies_t<N...>>) {
      static_assert(detail::takes<op::tile, detail::got<X>, copies_t<N...>>,
                    "[tile] expects numbers of times, none negative, and a result within memory");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, detail::tiled_shape<S, copies_t<N...>>>(
          detail::tile_checked(any_tensor(detail::any_lower<K>(x, w)), times.value, w).handle());
  } else
    return detail::tile_checked(x, times.value, w);
}
/// The same with numbers known only at run time. Throws invalid_argument if one is negative.
any_tensor tile(const any_tensor& x, const dims& times, ext::source_location w = ext::here());
/// @cond refused
template <ext::expression X, class... Given>
requires(sizeof...(Given) == 0 || detail::starts_with_number<Given...>) detail::refused
    tile(const X&, const Given&...) {
  static_assert(detail::takes<op::tile, detail::got<X>, detail::got<Given>...>,
                "[tile] expects a number of times for each axis: tile(x, copies<2, 3>), or tile(x, "
                "{2, 3}) where they are known only at run time");
  return {};
}
/// @endcond

}  // namespace deft
