// SPDX-License-Identifier: Apache-2.0
// deft/op/ensure_shape.hpp: y = x, once the run has found x to have the extents that are declared.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct ensure_shape {
  static constexpr std::string_view name = "ensure_shape";
  static constexpr int arity = 1;
  static constexpr op_role role = op_role::alias;
  static constexpr op_traits traits = op_traits::keeps_axes | op_traits::checks;
  dims shape;
  static constexpr auto fields = field_list(field{"shape", &ensure_shape::shape});

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N&, any_tensor dz) {
    return dz;
  }
};

template <class From, class To>
struct ensured : detail::typed_shape<ensured<From, To>> {
  static constexpr bool make(dims& out) { return unify(From::value, To::value, out); }
};
}  // namespace deft::op

namespace deft {
/// x, the same tensor, with the extents of `shape` where those of x are known only at run time:
/// `ensure_shape(x, shape<dyn, 784>)`. A run whose value has others throws invalid_argument, with
/// this source location. That x cannot have them is a compile error where the types show it, and
/// throws invalid_argument otherwise. `tensor<float, dyn, 784>(t)` does the same for an any_tensor
/// t.
template <ext::expression X, std::int64_t... E, class K = ext::kernels_for<X>>
auto ensure_shape(const X& x, shape_t<E...>, ext::source_location w = ext::here()) {
  if constexpr (!ext::typed_expression<X>) {
    return any_tensor(
        detail::as_declared(any_tensor(x).handle(), {shape_t<E...>::value, x.type()}, w));
  } else if constexpr (!op::ensured<ext::shape_type_of<X>, shape_t<E...>>::possible) {
    static_assert(detail::takes<op::ensure_shape, detail::got<X>, shape_t<E...>>,
                  "[ensure_shape] the tensor cannot have these extents: its type says others");
    return detail::refused();
  } else {
    return ext::tensor_of<ext::value_type_of<X>, op::ensured<ext::shape_type_of<X>, shape_t<E...>>>(
        ext::lower<K>(x, w), w);
  }
}
/// The same with extents known only at run time.
any_tensor ensure_shape(const any_tensor& x, const dims& shape,
                        ext::source_location w = ext::here());
/// @cond refused
template <std::int64_t... E, ext::expression X, class... Given>
requires(sizeof...(E) > 0 || sizeof...(Given) == 0 ||
         detail::starts_without_shape<Given...>) detail::refused
    ensure_shape(const X&, const Given&...) {
  static_assert(detail::takes<op::ensure_shape, detail::got<X>, detail::got<Given>...>,
                "[ensure_shape] expects a shape, and got none, or something else: ensure_shape(x, "
                "shape<dyn, 3>), or ensure_shape(x, {n, 3}) where it is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft
