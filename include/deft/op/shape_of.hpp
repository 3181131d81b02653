// SPDX-License-Identifier: Apache-2.0
// deft/op/shape_of.hpp: the extents of a tensor, and the number of its axes.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct shape_of;  ///< sizes along axes; only messages use this name
}

namespace deft {

namespace detail {
any_tensor add_shape_of(const any_tensor& x, source_location w);
template <class X>
struct rank_as_extent {
  static constexpr dims value{extents_of<X>.n};
};
}  // namespace detail

/// The extents of x as a vector of int64: a constant where they are known.
template <ext::expression X, class K = ext::kernels_for<X>>
auto shape_of(const X& x, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>)
    return ext::tensor_of<std::int64_t, detail::rank_as_extent<X>>(
        detail::add_shape_of(any_tensor(detail::any_lower<K>(x, w)), w).handle());
  else
    return detail::add_shape_of(any_tensor(x), w);
}
/// The number of axes of x, which is known when the graph is written.
template <ext::expression X>
constexpr int rank_of(const X& x) {
  if constexpr (ext::typed_expression<X>)
    return static_cast<void>(x), ext::extents_of<X>.n;
  else
    return any_tensor(x).rank();
}

}  // namespace deft
