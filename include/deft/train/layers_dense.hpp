// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_dense.hpp: fully connected layers.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/matmul.hpp>
#include <deft/train/layers_common.hpp>

namespace deft {

namespace op {
struct dense;  ///< a matmul and a sum; only messages use this name
}

namespace detail {
template <class X, class W, class B>
inline constexpr bool can_be_dense = [] {
  const dims &x = extents_of<X>, &w = extents_of<W>, &b = extents_of<B>;
  auto agree = [](std::int64_t m, std::int64_t n) { return m == n || m == dyn || n == dyn; };
  return std::is_same_v<value_type_of<X>, value_type_of<W>> &&
         std::is_same_v<value_type_of<X>, value_type_of<B>> && x.n == 2 && w.n == 2 && b.n == 1 &&
         agree(x.e[1], w.e[0]) && agree(w.e[1], b.e[0]);
}();
/// Whether what follows x is neither weights and a bias nor units and a name.
template <class... Given>
inline constexpr bool no_dense = true;
template <class First, class Second, class... More>
inline constexpr bool no_dense<First, Second, More...> =
    text<First> || std::is_arithmetic_v<Second>;
}  // namespace detail

/// x w + b, for x of (n,in), weights w of (in,out) and a bias b of (out). Dtypes and extents that
/// do not fit are a compile error where the types show it, and throw invalid_argument otherwise.
template <ext::expression X, ext::expression W, ext::expression B, class K = ext::kernels_for<X>>
auto dense(const X& x, const W& w, const B& b, ext::source_location p = ext::here()) {
  if constexpr (ext::typed_expression<X> && ext::typed_expression<W> && ext::typed_expression<B>) {
    if constexpr (!detail::can_be_dense<X, W, B>) {
      static_assert(detail::takes<op::dense, detail::got<X>, detail::got<W>, detail::got<B>>,
                    "[dense] expects x of (n,in), weights of (in,out) and a bias of (out), of one "
                    "dtype, and got others");
      return detail::refused();
    } else
      return matmul(x, w, p) + b;
  } else
    return any_tensor(matmul(any_tensor(x), any_tensor(w), p) + any_tensor(b));
}

/// Options of a dense layer with variables of its own.
struct dense_options {
  activation_function activation = {};                     ///< `.activation = relu`
  std::optional<deft::initializer> initializer = {};       ///< of the weights; glorot_uniform()
  std::optional<deft::initializer> bias_initializer = {};  ///< zeros()
  deft::regularizer regularizer = {};  ///< of the weights; its loss is added as by add_loss
  bool bias = true;                    ///< whether the layer has a bias
  /// The variables' names do not contain the name scopes around the call, so that layers in several
  /// of them share the variables.
  bool shared = false;
};

/// activation(x w + b), with variables NAME/kernel of (in,units) and NAME/bias of (units) under the
/// name scopes in force. Where the graph has them already, they are used again. x is (n,in), or of
/// higher rank; its last axis becomes (units). Throws invalid_argument if x is not floating or its
/// last extent unknown, or if variables of these names have other shapes.
any_tensor dense(const any_tensor& x, std::int64_t units, std::string_view name,
                 const dense_options& options = {}, ext::source_location w = ext::here());

namespace detail {
template <class Shape, std::int64_t Last>
struct with_last {
  static constexpr dims value = [] {
    dims d = Shape::value;
    if (d.n > 0) d.e[d.n - 1] = Last;
    return d;
  }();
};
}  // namespace detail

/// The same with units known at compile time: for x of (?,784), `dense<10>(x, "fc")` is (?,10).
template <std::int64_t Units, ext::typed_expression X, class K = ext::kernels_for<X>>
auto dense(const X& x, std::string_view name, const dense_options& options = {},
           ext::source_location w = ext::here()) {
  constexpr dims in = ext::shape_type_of<X>::value;
  if constexpr (!ext::is_floating(dtype_of<ext::value_type_of<X>>) || in.n < 2)
    static_assert(detail::takes<op::dense, detail::got<X>>,
                  "[dense] expects a tensor of float or double of (n,in), and got another");
  else if constexpr (in.e[in.n - 1] == dyn)
    static_assert(detail::takes<op::dense, detail::got<X>>,
                  "[dense] expects a tensor whose last extent is known, as the weights' shape "
                  "depends on it: use ensure_shape(x, shape<dyn, N>)");
  static_assert(Units > 0, "[dense] expects at least one unit");
  return ext::tensor_of<ext::value_type_of<X>, detail::with_last<ext::shape_type_of<X>, Units>>(
      dense(any_tensor(detail::any_lower<K>(x, w)), Units, name, options, w).handle());
}
/// @cond refused
template <std::int64_t Units, ext::expression X>
requires(!ext::typed_expression<X>) detail::refused
    dense(const X&, std::string_view, const dense_options& = {}) {
  static_assert(detail::takes<op::dense, detail::got<X>>,
                "[dense] dense<N> expects a typed tensor, and got one whose shape is known only at "
                "run time: use dense(x, N, \"fc\")");
  return {};
}
template <std::int64_t Units, ext::typed_expression X>
detail::refused dense(const X&) {
  static_assert(detail::takes<op::dense, detail::got<X>>,
                "[dense] expects a name, as in dense<10>(x, \"fc\")");
  return {};
}
template <std::int64_t Units, ext::typed_expression X>
detail::refused dense(const X&, std::string_view, const detail::bare_activation&) {
  static_assert(detail::takes<op::dense, detail::got<X>, activation_function>,
                "[dense] expects its activation among the options, as in dense<10>(x, \"fc\", "
                "{.activation = relu})");
  return {};
}
template <ext::expression X>
detail::refused dense(const X&, std::int64_t, const detail::bare_activation&) {
  static_assert(detail::takes<op::dense, detail::got<X>, std::int64_t>,
                "[dense] expects a name, and its activation among the options, as in dense(x, 64, "
                "\"fc\", {.activation = relu})");
  return {};
}
template <std::int64_t Units, ext::expression X>
detail::refused dense(const X& x, const dense_options&) {
  return dense(x, Units);
}
template <ext::expression X>
detail::refused dense(const X& x, const dense_options&) {
  return dense(x, 0);
}
template <ext::expression X>
detail::refused dense(const X& x, std::int64_t, const dense_options&) {
  return dense(x, 0);
}
template <std::int64_t In, std::int64_t Out, ext::expression X, class... Given>
detail::refused dense(const X& x, const Given&...) {
  return dense(x, Out);
}
template <ext::expression X, class... Given>
requires(detail::no_dense<Given...>) detail::refused dense(const X&, const Given&...) {
  static_assert(
      detail::takes<op::dense, detail::got<X>, detail::got<Given>...>,
      "[dense] expects units and a name, or weights and a bias: dense<10>(x, \"fc\"), dense(x, 10, "
      "\"fc\"), dense(x, w, b); the number of inputs is the last extent of x");
  return {};
}
/// @endcond

}  // namespace deft
