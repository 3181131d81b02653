// SPDX-License-Identifier: Apache-2.0
// deft/op/identity.hpp: y = x, as a separate node: on another device, or after other nodes.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct identity {
  static constexpr std::string_view name = "identity";
  static constexpr int arity = 1;
  static constexpr op_role role = op_role::alias;

  tensor_type infer(std::span<const tensor_type> in) const { return in[0]; }

  template <class N>
  static auto grad(const N&, any_tensor dz) {
    return dz;
  }
};
}  // namespace deft::op

namespace deft {
/// The value of x, as a new node under the device, control and name scopes in force here.
template <ext::expression X, class K = ext::kernels_for<X>>
auto identity(const X& x, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>)
    return detail::apply_typed<ext::value_type_of<X>, ext::shape_type_of<X>, K>(op::identity{}, w,
                                                                                x);
  else
    return detail::apply<K>(op::identity{}, w, x);
}
}  // namespace deft
