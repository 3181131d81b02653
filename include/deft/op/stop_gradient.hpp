// SPDX-License-Identifier: Apache-2.0
// deft/op/stop_gradient.hpp: y = x, through which no gradient flows.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct stop_gradient {
  static constexpr std::string_view name = "stop_gradient";
  static constexpr int arity = 1;
  static constexpr op_role role = op_role::alias;

  tensor_type infer(std::span<const tensor_type> in) const { return in[0]; }

  template <class N>
  static auto grad(const N&, any_tensor) {
    return any_tensor();
  }
};
}  // namespace deft::op

namespace deft {
/// The value of x; `gradients` treats it as a constant.
template <ext::expression X, class K = ext::kernels_for<X>>
auto stop_gradient(const X& x, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>)
    return detail::apply_typed<ext::value_type_of<X>, ext::shape_type_of<X>, K>(op::stop_gradient{},
                                                                                w, x);
  else
    return detail::apply<K>(op::stop_gradient{}, w, x);
}
}  // namespace deft
