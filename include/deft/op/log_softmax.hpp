// SPDX-License-Identifier: Apache-2.0
// deft/op/log_softmax.hpp: the logarithm of softmax, stable for large x: an expression of other
// operations.
#pragma once
#include <deft/op/softmax.hpp>

namespace deft::op {
struct log_softmax;  ///< only messages use this name
}

namespace deft {

/// x - log(sum(exp(x))) of float or double logits along one axis, the last without a choice, in the
/// shape of x: `log_softmax(x, axis<0>)`. Elements are compared with the largest one first, so that
/// nothing overflows.
template <ext::expression X, int A = -1, class K = ext::kernels_for<X>>
auto log_softmax(const X& x, axis_t<A> a = {}, ext::source_location w = ext::here()) {
  if constexpr (ext::typed_expression<X>) {
    if constexpr (!detail::is_floating_expression<X>) {
      static_assert(
          detail::takes<op::log_softmax, detail::got<X>>,
          "[log_softmax] expects a floating tensor, and got another dtype: use cast<float>(x)");
      return detail::refused();
    } else if constexpr (!detail::axis_in_range<ext::shape_type_of<X>, A>) {
      static_assert(detail::takes<op::log_softmax, detail::got<X>, axis_t<A>>,
                    "[log_softmax] expects an axis within the tensor's rank, and got another");
      return detail::refused();
    } else
      return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
          detail::add_log_softmax(any_tensor(detail::any_lower<K>(x, w)), a.value, w).handle());
  } else
    return detail::add_log_softmax(x, a.value, w);
}
/// The same with an axis known only at run time.
/// Throws invalid_argument unless `a` holds exactly one axis, in range.
template <ext::expression X>
any_tensor log_softmax(const X& x, const axes& a, ext::source_location w = ext::here()) {
  return detail::add_log_softmax(any_tensor(x), a.value, w);
}
/// @cond refused
template <int... A, ext::expression X, class... Given>
requires(sizeof...(A) > 0 || detail::starts_with_number<Given...>) detail::refused
    log_softmax(const X&, const Given&...) {
  static_assert(detail::takes<op::log_softmax, detail::got<X>, detail::got<Given>...>,
                "[log_softmax] expects an axis, and got a number: log_softmax(x, axis<1>), or "
                "log_softmax(x, axes{1}) where it is known only at run time");
  return {};
}
/// @endcond

}  // namespace deft
