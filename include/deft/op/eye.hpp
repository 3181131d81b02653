// SPDX-License-Identifier: Apache-2.0
// deft/op/eye.hpp: ones on the diagonal of a matrix.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct eye;  ///< a comparison of positions; only messages use this name
}

namespace deft {

/// A matrix of so many rows and columns with ones on its diagonal and zeros elsewhere, in a dtype,
/// true and false if that is bool.
any_tensor eye(std::int64_t rows, std::int64_t columns, dtype type = dtype::float32,
               ext::source_location w = ext::here());
/// The same of a shape known at compile time: `eye(shape<3, 3>)`, `eye<double>(shape<2, 3>)`.
template <ext::element T = float, std::int64_t... E>
auto eye(shape_t<E...> s, ext::source_location w = ext::here()) {
  if constexpr (s.value.n != 2 || !s.value.is_static() || std::is_same_v<T, std::string>) {
    static_assert(
        detail::takes<op::eye, T, shape_t<E...>>,
        "[eye] expects the shape of a matrix without dyn, and a dtype of numbers or bool: "
        "use eye(rows, columns)");
    return detail::refused();
  } else
    return tensor<T, E...>(eye(s.value.e[0], s.value.e[1], dtype_of<T>, w).handle());
}

}  // namespace deft
