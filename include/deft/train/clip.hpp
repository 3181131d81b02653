// SPDX-License-Identifier: Apache-2.0
// deft/train/clip.hpp: limits of gradients.
#pragma once
#include <deft/op/clip.hpp>
#include <deft/train/optimizer.hpp>
#include <vector>

namespace deft {

namespace op {
struct clip_by_norm;   ///< several operations; only messages use these names
struct clip_by_value;  ///< likewise
struct global_norm;    ///< likewise
}  // namespace op

/// Each element of x, at least `low` and at most `high`. NaN stays NaN.
template <ext::expression X, ext::operand Low, ext::operand High>
auto clip_by_value(const X& x, const Low& low, const High& high,
                   ext::source_location w = ext::here()) {
  return clip(x, low, high, w);
}
/// @cond refused
template <ext::expression X, ext::operand... Limit>
requires(sizeof...(Limit) < 2) detail::refused clip_by_value(const X&, const Limit&...) {
  static_assert(detail::takes<op::clip_by_value, detail::got<X>, detail::got<Limit>...>,
                "[clip_by_value] expects a low and a high limit: clip_by_value(x, 0, 1); one limit "
                "alone is maximum(x, 0) or minimum(x, 1)");
  return {};
}
/// @endcond

/// x times norm / |x| if |x|, its Euclidean norm over all elements, is above `norm`. Throws
/// invalid_argument if `norm` is a number that is not finite or not above 0, as the others do.
any_tensor clip_by_norm(const any_tensor& x, const hyperparameter& norm,
                        ext::source_location w = ext::here());
/// The same of the dtype and shape that the type of x shows.
template <ext::typed_expression X, class K = ext::kernels_for<X>>
auto clip_by_norm(const X& x, const hyperparameter& norm, ext::source_location w = ext::here()) {
  if constexpr (!detail::is_floating_expression<X>) {
    static_assert(detail::takes<op::clip_by_norm, detail::got<X>>,
                  "[clip_by_norm] expects float or double, and got another dtype: use "
                  "cast<float>(x)");
    return detail::refused();
  } else {
    return ext::tensor_of<ext::value_type_of<X>, ext::shape_type_of<X>>(
        clip_by_norm(any_tensor(detail::any_lower<K>(x, w)), norm, w).handle(), w);
  }
}
/// @cond refused
template <ext::expression X>
detail::refused clip_by_norm(const X&) {
  static_assert(detail::takes<op::clip_by_norm, detail::got<X>>,
                "[clip_by_norm] expects the largest norm, as in clip_by_norm(x, 1)");
  return {};
}
/// @endcond

/// The Euclidean norm of all gradients together, a scalar of double. Those that are empty count as
/// 0. Throws invalid_argument if all are.
any_tensor global_norm(const std::vector<gradient_of_variable>& gradients,
                       ext::source_location w = ext::here());

/// Every gradient times norm / global_norm(gradients) if that norm is above `norm`. All become NaN
/// if it is not finite. (Pascanu, Mikolov, Bengio: On the difficulty of training recurrent neural
/// networks, ICML 2013.)
std::vector<gradient_of_variable> clip_by_global_norm(std::vector<gradient_of_variable> gradients,
                                                      const hyperparameter& norm,
                                                      ext::source_location w = ext::here());
/// @cond refused
template <ext::expression... G, class... Norm>
requires(sizeof...(G) >
         0) std::vector<gradient_of_variable> clip_by_global_norm(const std::tuple<G...>&,
                                                                  const Norm&...) {
  static_assert(detail::takes<op::global_norm, std::tuple<detail::got<G>...>>,
                "[clip_by_global_norm] expects gradients with their variables: "
                "o.apply_gradients(clip_by_global_norm(o.compute_gradients(loss), 5)) of an "
                "optimizer o");
  return {};
}
template <ext::expression... G>
requires(sizeof...(G) > 0) detail::refused global_norm(const std::tuple<G...>&) {
  static_assert(detail::takes<op::global_norm, std::tuple<detail::got<G>...>>,
                "[global_norm] expects gradients with their variables, as of "
                "o.compute_gradients(loss) of an optimizer o");
  return {};
}
/// @endcond
/// Each element of every gradient, at least `low` and at most `high`; empty gradients stay empty. A
/// gradient of rows (see optimizer) stays one if `low` and `high` allow 0.
std::vector<gradient_of_variable> clip_by_value(std::vector<gradient_of_variable> gradients,
                                                double low, double high,
                                                ext::source_location w = ext::here());
/// Each gradient by its own norm.
std::vector<gradient_of_variable> clip_by_norm(std::vector<gradient_of_variable> gradients,
                                               const hyperparameter& norm,
                                               ext::source_location w = ext::here());

}  // namespace deft
