// SPDX-License-Identifier: Apache-2.0
// deft/op/slice.hpp: a rectangular part of a tensor.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct slice {
  static constexpr std::string_view name = "slice";
  static constexpr int arity = 1;
  static constexpr int max_arity = 2;  ///< x, and a tensor of the result's shape
  dims begin;                          ///< of each axis, the first index taken
  /// Extents; `dyn`: up to the end. Empty where a second input has the shape.
  dims size;
  static constexpr auto fields =
      field_list(field{"begin", &slice::begin}, field{"size", &slice::size});

  /// The shape rule; false if x has no such part.
  constexpr bool shape(const dims& x, dims& out) const {
    out = {};
    if (begin.n != x.n || size.n != x.n) return false;
    for (int i = 0; i < x.n; ++i) {
      const std::int64_t b = begin.e[i], s = size.e[i], e = x.e[i];
      if (b < 0 || (s < 0 && s != dyn)) return false;
      if (e != dyn && (b > e || (s != dyn && s > e - b))) return false;
      out.push_back(s != dyn || e == dyn ? s : e - b);
    }
    return true;
  }

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

/// The first index of each axis, known at compile time: `slice(x, at<0, 2>, shape<4, 3>)`.
template <std::int64_t... First>
struct at_t {
  static constexpr dims value{First...};
};
template <std::int64_t... First>
inline constexpr at_t<First...> at{};

namespace detail {
template <class From, class At, class Size>
struct sliced : typed_shape<sliced<From, At, Size>> {
  static constexpr bool make(dims& out) {
    return op::slice{At::value, Size::value}.shape(From::value, out);
  }
};
template <class From, class At, class Size>
inline constexpr bool can_slice = sliced<From, At, Size>::possible;

/// The part of `padded` that is `x` where `pad{before, after}` made it of x, which need not be
/// computed where its extents, or that nothing is behind it, say as much.
any_tensor slice_of(const any_tensor& padded, const dims& before, const dims& after,
                    const any_tensor& x);
}  // namespace detail

/// The part of x that begins at the index `begin` and has the extents `size`, where `dyn` means up
/// to the end of the axis. Throws invalid_argument unless x has such a part.
any_tensor slice(const any_tensor& x, const dims& begin, const dims& size, source_place w = here());

/// The same, known at compile time: for x of (?,10), `slice(x, at<0, 2>, shape<dyn, 3>)` is the
/// columns 2, 3 and 4.
template <expression X, std::int64_t... First, std::int64_t... E, class K = kernels_for<X>>
auto slice(const X& x, at_t<First...> begin, shape_t<E...> size, source_place w = here()) {
  if constexpr (typed_expression<X>) {
    using From = shape_type_of<X>;
    if constexpr (!detail::can_slice<From, at_t<First...>, shape_t<E...>>) {
      static_assert(detail::takes<op::slice, detail::got<X>, at_t<First...>, shape_t<E...>>,
                    "[slice] expects a first index and a size of each axis within the tensor's "
                    "extents, and got others");
      return detail::refused();
    } else
      return detail::apply_typed<value_type_of<X>,
                                 detail::sliced<From, at_t<First...>, shape_t<E...>>, K>(
          op::slice{begin.value, size.value}, w, x);
  } else
    return slice(any_tensor(x), begin.value, size.value, w);
}

}  // namespace deft

#include <deft/op/pad.hpp>
template <class N>
auto deft::op::slice::grad(const N& n, any_tensor dz) {
  return detail::pad_to(dz, n.attr().begin, n.attr().size, n.template in<0>());
}
