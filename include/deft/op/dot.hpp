// SPDX-License-Identifier: Apache-2.0
// deft/op/dot.hpp: the sum of the products of two vectors; a matmul.
#pragma once
#include <deft/op/matmul.hpp>

namespace deft::op {
struct dot;  ///< a matmul; only messages use this name
}

namespace deft {
namespace detail {
/// Throws invalid_argument, in the name of `op`, unless both are vectors.
void expect_vectors(std::string_view op, const any_tensor& x, const any_tensor& y,
                    source_location w);
}  // namespace detail

/// The scalar product of two vectors of one dtype and extent. Others are a compile error where the
/// types show it; otherwise it throws invalid_argument; for `dyn` extents the run does.
template <ext::expression X, ext::expression Y, class K = ext::kernels_for<X>>
auto dot(const X& x, const Y& y, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X> && ext::typed_expression<Y>) {
    if constexpr (ext::extents_of<X>.n != 1 || ext::extents_of<Y>.n != 1) {
      static_assert(detail::takes<op::dot, detail::got<X>, detail::got<Y>>,
                    "[dot] expects two vectors, and got another rank: matmul is the product of "
                    "matrices, sum(x * y) adds the products of all elements");
      return detail::refused();
    } else
      return matmul<X, Y, K>(x, y, w);
  } else if constexpr (std::same_as<X, detail::refused> || std::same_as<Y, detail::refused>) {
    return detail::refused();
  } else {
    const any_tensor a(detail::any_lower<K>(x, w)), b(detail::any_lower<K>(y, w));
    detail::expect_vectors("dot", a, b, w);
    return matmul(a, b, w);
  }
}
}  // namespace deft
