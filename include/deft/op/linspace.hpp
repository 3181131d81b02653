// SPDX-License-Identifier: Apache-2.0
// deft/op/linspace.hpp: numbers at equal distances.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct linspace;  ///< several operations; only messages use this name
}

namespace deft {

namespace detail {
any_tensor add_linspace(double begin, double end, std::int64_t n, dtype type, source_location w);
}  // namespace detail

/// n numbers at equal distances from `begin` to `end`, both among them, as of NumPy: computed in
/// double, and rounded once; of one number, that is `begin`. `linspace<double>(0, 1, 5)`. Throws
/// invalid_argument if n is negative.
template <ext::element T = float>
auto linspace(double begin, double end, std::int64_t n, ext::source_location w = ext::here()) {
  if constexpr (!ext::is_floating_type<T>) {
    static_assert(detail::takes<op::linspace, T>,
                  "[linspace] expects a floating dtype, and got another");
    return detail::refused();
  } else
    return tensor<T, dyn>(detail::add_linspace(begin, end, n, dtype_of<T>, w).handle());
}

}  // namespace deft
