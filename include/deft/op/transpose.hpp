// SPDX-License-Identifier: Apache-2.0
// deft/op/transpose.hpp: axes in another order.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct transpose {
  static constexpr std::string_view name = "transpose";
  static constexpr int arity = 1;
  dims perm;  ///< axis i of the result is axis perm[i] of the input
  static constexpr auto fields = field_list(field{"perm", &transpose::perm});

  /// The shape rule; false if `perm` is not a permutation of x's axes.
  constexpr bool shape(const dims& x, dims& out) const {
    dims sorted;
    out = {};
    if (perm.n != x.n || !normalize_axes(perm, x.n, sorted)) return false;
    for (auto p : perm) {
      if (p < 0) return false;
      out.push_back(x.e[p]);
    }
    return true;
  }
  static constexpr dims reversed(int rank) {
    dims p;
    for (int i = rank; i-- > 0;) p.push_back(i);
    return p;
  }

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

namespace detail {
template <class Shape, class Perm>
struct transposed : typed_shape<transposed<Shape, Perm>> {
  static constexpr bool make(dims& out) {
    return op::transpose{Perm::value}.shape(Shape::value, out);
  }
};
template <class Shape>
struct reversal {
  static constexpr dims value = op::transpose::reversed(Shape::value.n);
};
template <class Shape, class Perm>
inline constexpr bool is_permutation = transposed<Shape, Perm>::possible;
}  // namespace detail

/// x with its axes in reverse order: a matrix transposed.
template <ext::expression X, class K = ext::kernels_for<X>>
auto transpose(const X& x, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    using P = detail::reversal<S>;
    return detail::apply_typed<ext::value_type_of<X>, detail::transposed<S, P>, K>(
        op::transpose{P::value}, w, x);
  } else
    return detail::apply<K>(op::transpose{op::transpose::reversed(x.rank())}, w, x);
}
/// Axis i of the result is axis P[i] of x: `transpose(x, perm<0, 2, 1>)`.
template <ext::expression X, int... P, class K = ext::kernels_for<X>>
auto transpose(const X& x, perm_t<P...> p, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    using S = ext::shape_type_of<X>;
    if constexpr (!detail::is_permutation<S, perm_t<P...>>) {
      static_assert(detail::takes<op::transpose, detail::got<X>, perm_t<P...>>,
                    "[transpose] expects a permutation of the tensor's axes, and got another list");
      return detail::refused();
    } else
      return detail::apply_typed<ext::value_type_of<X>, detail::transposed<S, perm_t<P...>>, K>(
          op::transpose{p.value}, w, x);
  } else
    return detail::apply<K>(op::transpose{p.value}, w, x);
}
/// The same with a permutation known only at run time.
/// Throws invalid_argument if it is not a permutation of x's axes.
template <ext::expression X, class K = ext::kernels_for<X>>
any_tensor transpose(const X& x, const axes& perm, ext::source_location w = ext::here()) {
  return detail::apply<K>(op::transpose{perm.value}, w, x);
}
/// The same in braces: `transpose(x, {0, 2, 1})`.
template <ext::expression X, class K = ext::kernels_for<X>>
any_tensor transpose(const X& x, std::initializer_list<std::int64_t> perm,
                     ext::source_location w = ext::here()) {
  return detail::apply<K>(op::transpose{dims(perm)}, w, x);
}
/// @cond refused
template <int... P, ext::expression X, class... Given>
requires(sizeof...(P) > 0 || detail::starts_with_number<Given...> ||
         (detail::is_axis_type<Given> || ...)) detail::refused
    transpose(const X&, const Given&...) {
  static_assert(
      detail::takes<op::transpose, detail::got<X>, detail::got<Given>...>,
      "[transpose] expects a permutation of all axes, and got numbers or axes: transpose(x, "
      "perm<1, 0>), or transpose(x, {1, 0}) where it is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft

template <class N>
auto deft::op::transpose::grad(const N& n, any_tensor dz) {
  dims perm = n.attr().perm, inverse = perm;
  for (int i = 0; i < perm.size(); ++i) inverse[static_cast<int>(perm[i])] = i;
  return deft::transpose(dz, deft::axes(inverse));
}
