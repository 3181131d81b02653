// SPDX-License-Identifier: Apache-2.0
// deft/op/sum_to.hpp: the sum over broadcast axes; the gradient of broadcasting.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft::op {
struct sum_to {
  static constexpr std::string_view name = "sum_to";
  static constexpr int arity = 2;  ///< x, and a tensor of the target shape

  /// Whether `like` can be broadcast to `x`.
  static constexpr bool possible(const dims& x, const dims& like) {
    dims out;
    return broadcast(like, x, out) && may_equal(out, x);
  }

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};
}  // namespace deft::op

namespace deft {

namespace detail {
template <class X, class Like>
inline constexpr bool may_sum_to = op::sum_to::possible(X::value, Like::value);
/// A sum and a reshape where the known extents tell which axes were broadcast, else the operation.
any_tensor sum_like(const any_tensor& x, const any_tensor& like, source_location w);
}  // namespace detail

/// x summed over the axes along which `like` would be broadcast to it: the leading ones that `like`
/// lacks, and those where its extent is 1. The result has the shape of `like` and the dtype of x.
/// Throws invalid_argument if `like` cannot be broadcast to the shape of x.
template <ext::expression X, ext::expression Like, class K = ext::kernels_for<X>>
auto sum_to(const X& x, const Like& like, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X> && ext::typed_expression<Like>) {
    if constexpr (!detail::may_sum_to<ext::shape_type_of<X>, ext::shape_type_of<Like>>) {
      static_assert(detail::takes<op::sum_to, detail::got<X>, detail::got<Like>>,
                    "[sum_to] expects a tensor that the other can be broadcast to");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<Like>>(
          detail::sum_like(any_tensor(x), any_tensor(like), w).handle());
  } else
    return detail::sum_like(any_tensor(x), any_tensor(like), w);
}

}  // namespace deft

#include <deft/op/broadcast_to.hpp>
template <class N>
auto deft::op::sum_to::grad(const N& n, any_tensor dz) {
  return std::tuple{deft::broadcast_to(dz, n.template in<0>()), any_tensor()};
}
