// SPDX-License-Identifier: Apache-2.0
// deft/op/one_hot.hpp: rows with 1 at an index and 0 at the others.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct one_hot {
  static constexpr std::string_view name = "one_hot";
  static constexpr int arity = 1;
  std::int64_t depth = 0;
  dtype type = dtype::float32;
  static constexpr auto fields =
      field_list(field{"depth", &one_hot::depth}, field{"dtype", &one_hot::type});

  static constexpr dims shape(const dims& indices, std::int64_t depth) {
    dims out = indices;
    if (out.n < max_rank) out.push_back(depth);
    return out;
  }

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N&, any_tensor) {
    return any_tensor();
  }
};
}  // namespace deft::op

namespace deft {

namespace detail {
template <class X>
inline constexpr bool can_grow = extents_of<X>.n < max_rank;
template <class Shape, std::int64_t Depth>
struct one_hot_shape {
  static constexpr dims value = op::one_hot::shape(Shape::value, Depth);
};
}  // namespace detail

/// A row of Depth elements for each integer index, 1 at the index and 0 at the others:
/// `one_hot<10>(labels)` of (n) is float (n,10); `one_hot<10, double>(labels)` is double. An index
/// out of range gives a row of zeros.
template <std::int64_t Depth, ext::element T = float, ext::expression X,
          class K = ext::kernels_for<X>>
auto one_hot(const X& indices, ext::source_location w = ext::here()) {
  static_assert(Depth >= 0, "[one_hot] expects a depth that is a size");
  constexpr op::one_hot o{Depth, dtype_of<T>};
  if constexpr (ext::typed_expression<X>) {
    if constexpr (!detail::is_integer_expression<X>) {
      static_assert(detail::takes<op::one_hot, detail::got<X>>,
                    "[one_hot] expects integer indices, and got another dtype: use "
                    "cast<std::int64_t>(x)");
      return detail::refused();
    } else if constexpr (!detail::can_grow<X>) {
      static_assert(detail::takes<op::one_hot, detail::got<X>>,
                    "[one_hot] expects indices of rank 7 at most, and got rank 8");
      return detail::refused();
    } else
      return detail::apply_typed<T, detail::one_hot_shape<ext::shape_type_of<X>, Depth>, K>(
          o, w, indices);
  } else
    return detail::apply<K>(o, w, indices);
}
/// The same with a depth and dtype known only at run time. Throws invalid_argument for a negative
/// depth.
template <ext::expression X, class K = ext::kernels_for<X>>
any_tensor one_hot(const X& indices, std::int64_t depth, dtype type = dtype::float32,
                   ext::source_location w = ext::here()) {
  return detail::apply<K>(op::one_hot{depth, type}, w, indices);
}
/// @cond refused
template <std::int64_t... Depth, ext::expression X, class... Given>
requires(sizeof...(Depth) == 0 ? sizeof...(Given) == 0 || (detail::is_axis_type<Given> || ...)
                               : (std::same_as<dtype, Given> || ...)) detail::refused
    one_hot(const X&, const Given&...) {
  static_assert(
      detail::takes<op::one_hot, detail::got<X>, detail::got<Given>...>,
      "[one_hot] expects a depth, and the dtype as a type: one_hot<10>(x), one_hot<10, double>(x), "
      "or one_hot(x, n, dtype::float64) where they are known only at run time");
  return {};
}
/// @endcond

}  // namespace deft
