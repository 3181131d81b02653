// SPDX-License-Identifier: Apache-2.0
// deft/op/outer.hpp: the products of all pairs of elements of two vectors; a product that
// broadcasts.
#pragma once
#include <deft/op/dot.hpp>
#include <deft/op/expand_dims.hpp>
#include <deft/op/mul.hpp>

namespace deft::op {
struct outer;  ///< a mul; only messages use this name
}

namespace deft {
/// (m), (n) -> (m,n): element (i,j) is x_i y_j. It is elementwise, and takes the dtypes that `*`
/// takes. Operands that are not vectors of one dtype are a compile error where the types show it;
/// otherwise it throws invalid_argument.
template <ext::expression X, ext::expression Y, class K = ext::kernels_for<X>>
auto outer(const X& x, const Y& y, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X> && ext::typed_expression<Y>) {
    if constexpr (!detail::one_value_type<X, Y>) {
      static_assert(detail::takes<op::outer, detail::got<X>, detail::got<Y>>,
                    "[outer] expects operands of one dtype, and got two: use cast<T>(x)");
      return detail::refused();
    } else if constexpr (ext::extents_of<X>.n != 1 || ext::extents_of<Y>.n != 1) {
      static_assert(detail::takes<op::outer, detail::got<X>, detail::got<Y>>,
                    "[outer] expects two vectors, and got another rank: reshape(x, shape<dyn>) "
                    "makes a vector");
      return detail::refused();
    } else
      return expand_dims(x, axis<1>, w) * y;
  } else if constexpr (std::same_as<X, detail::refused> || std::same_as<Y, detail::refused>) {
    return detail::refused();
  } else {
    const any_tensor a(detail::any_lower<K>(x, w)), b(detail::any_lower<K>(y, w));
    detail::expect_vectors("outer", a, b, w);
    return expand_dims(a, axis<1>, w) * b;
  }
}
}  // namespace deft
