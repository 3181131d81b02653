// SPDX-License-Identifier: Apache-2.0
// deft/op/softmax.hpp: exp(x) / sum(exp(x)) along the last axis, stable for large x.
#pragma once
#include <deft/op/base/reduction.hpp>

namespace deft::op {
struct softmax {
  static constexpr std::string_view name = "softmax";
  static constexpr int arity = 1;
  static constexpr op_traits traits = op_traits::keeps_axes;

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

namespace detail {
template <class X>
inline constexpr bool has_last_axis = extents_of<X>.n >= 1;
}  // namespace detail

/// Softmax of float or double logits along the last axis, exp(x) / sum(exp(x)), in the shape of x.
template <expression X, class K = kernels_for<X>>
auto softmax(const X& x, source_place w = here()) {
  if constexpr (typed_expression<X>) {
    if constexpr (!detail::is_floating_expression<X>) {
      static_assert(
          detail::takes<op::softmax, detail::got<X>>,
          "[softmax] expects a floating tensor, and got another dtype: use cast<float>(x)");
      return detail::refused();
    } else if constexpr (!detail::has_last_axis<X>) {
      static_assert(detail::takes<op::softmax, detail::got<X>>,
                    "[softmax] expects a last axis, and got a scalar");
      return detail::refused();
    } else
      return detail::apply_typed<value_type_of<X>, shape_type_of<X>, K>(op::softmax{}, w, x);
  } else
    return detail::apply<K>(op::softmax{}, w, x);
}

}  // namespace deft

#include <deft/op/mul.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/sum.hpp>
template <class N>
auto deft::op::softmax::grad(const N& n, any_tensor dz) {
  any_tensor y = n.out();
  return y * (dz - deft::sum(dz * y, deft::axis<-1>, deft::keepdims));
}
