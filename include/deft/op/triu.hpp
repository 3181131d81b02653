// SPDX-License-Identifier: Apache-2.0
// deft/op/triu.hpp: the elements on a diagonal and above it.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct triu;  ///< a choice by position; only messages use this name
}

namespace deft {

namespace detail {
any_tensor add_triu(const any_tensor& x, std::int64_t diagonal, source_location w);
}  // namespace detail

/// x with zeros, or false, in place of the elements of its last two axes that are not on a diagonal
/// or above it: x(i,j) stays where j >= i + diagonal.
template <ext::expression X, class K = ext::kernels_for<X>>
auto triu(const X& x, std::int64_t diagonal = 0, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    if constexpr (ext::extents_of<X>.n < 2) {
      static_assert(detail::takes<op::triu, detail::got<X>>,
                    "[triu] expects two axes or more, and got fewer");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
          detail::add_triu(any_tensor(detail::any_lower<K>(x, w)), diagonal, w).handle());
  } else
    return detail::add_triu(any_tensor(x), diagonal, w);
}

}  // namespace deft
