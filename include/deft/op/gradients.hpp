// SPDX-License-Identifier: Apache-2.0
// deft/op/gradients.hpp: reverse-mode differentiation of the graph.
#pragma once
#include <concepts>
#include <deft/expr/tensor.hpp>
#include <span>
#include <tuple>
#include <vector>

namespace deft {

namespace op {
struct gradients;  ///< several operations; only messages use this name
}

namespace ext {

namespace plan {

/// d loss / d x for every x, summed over the elements of `loss`; an empty any_tensor where `loss`
/// does not depend on x. Throws invalid_argument if `loss` is not floating, unimplemented if an
/// operation between them has no gradient.
std::vector<any_tensor> gradients(const any_tensor& loss, std::span<const any_tensor> xs);

/// Zeros of the dtype and shape of `x`.
any_tensor zeros_like(const any_tensor& x);

}  // namespace plan

}  // namespace ext

/// The gradients of `loss` with respect to tensors or variables, `gradients(loss, {w, b})` or of a
/// vector of them; zeros where `loss` does not depend on one. As in TensorFlow, a loss that is not
/// a scalar counts as the sum of its elements. Throws invalid_argument if `loss` is not floating,
/// unimplemented if an operation between them has no gradient.
template <ext::expression L, std::convertible_to<any_tensor> X = any_tensor>
std::vector<any_tensor> gradients(const L& loss, const std::vector<X>& xs) {
  const std::vector<any_tensor> tensors(xs.begin(), xs.end());
  std::vector<any_tensor> d = ext::plan::gradients(any_tensor(loss), tensors);
  for (std::size_t i = 0; i < d.size(); ++i)
    if (!d[i].valid()) d[i] = ext::plan::zeros_like(tensors[i]);
  return d;
}
/// The same for `x…`, typed like them.
template <ext::expression L, ext::expression... X>
requires(sizeof...(X) > 0) auto gradients(const L& loss, const X&... x) {
  std::vector<any_tensor> d = gradients(loss, std::vector<any_tensor>{any_tensor(x)...});
  std::size_t i = 0;
  auto take = [&]<class Y>(const Y&) {
    any_tensor g = std::move(d[i++]);
    if constexpr (ext::typed_expression<Y>)
      return ext::tensor_of<ext::value_type_of<Y>, ext::shape_type_of<Y>>(g);
    else
      return g;
  };
  return std::tuple<decltype(take(x))...>{take(x)...};
}
/// @cond refused
template <ext::expression L, class... X>
requires(!(ext::expression<X> && ...) ||
         sizeof...(X) == 0) std::tuple<detail::refused> gradients(const L&, const X&...) {
  static_assert(detail::takes<op::gradients, detail::got<L>, detail::got<X>...>,
                "[gradients] expects a loss, and then the tensors or variables to differentiate it "
                "by: gradients(loss, w, b), or gradients(loss, {w, b})");
  return {};
}
namespace detail {
template <class... G>
refused refuse_gradients() {
  static_assert(takes<op::gradients, std::tuple<got<G>...>>,
                "[gradients] yields a tuple of one gradient for each tensor, which auto [dw] = "
                "gradients(loss, w) takes apart");
  return {};
}
}  // namespace detail
template <ext::expression... G, class Y>
requires(sizeof...(G) > 0) detail::refused operator+(const std::tuple<G...>&, const Y&) {
  return detail::refuse_gradients<G...>();
}
template <ext::operand X, ext::expression... G>
requires(sizeof...(G) > 0) detail::refused operator+(const X&, const std::tuple<G...>&) {
  return detail::refuse_gradients<G...>();
}
template <ext::expression... G, class Y>
requires(sizeof...(G) > 0) detail::refused operator-(const std::tuple<G...>&, const Y&) {
  return detail::refuse_gradients<G...>();
}
template <ext::operand X, ext::expression... G>
requires(sizeof...(G) > 0) detail::refused operator-(const X&, const std::tuple<G...>&) {
  return detail::refuse_gradients<G...>();
}
template <ext::expression... G, class Y>
requires(sizeof...(G) > 0) detail::refused operator*(const std::tuple<G...>&, const Y&) {
  return detail::refuse_gradients<G...>();
}
template <ext::operand X, ext::expression... G>
requires(sizeof...(G) > 0) detail::refused operator*(const X&, const std::tuple<G...>&) {
  return detail::refuse_gradients<G...>();
}
template <ext::expression... G, class Y>
requires(sizeof...(G) > 0) detail::refused operator/(const std::tuple<G...>&, const Y&) {
  return detail::refuse_gradients<G...>();
}
template <ext::operand X, ext::expression... G>
requires(sizeof...(G) > 0) detail::refused operator/(const X&, const std::tuple<G...>&) {
  return detail::refuse_gradients<G...>();
}
/// @endcond

}  // namespace deft
