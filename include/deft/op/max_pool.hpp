// SPDX-License-Identifier: Apache-2.0
// deft/op/max_pool.hpp: the largest element of each window of images; and its gradients.
#pragma once
#include <deft/op/base/pooling.hpp>

namespace deft::op {
struct max_pool : pooling {
  static constexpr std::string_view name = "max_pool";
  static constexpr int arity = 1;

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};

/// The gradient of max_pool, in one pass: to the first of the largest elements of each window, in
/// row-major order (the first NaN, if there is one).
struct max_pool_gradient : pooling {
  static constexpr std::string_view name = "max_pool_gradient";
  static constexpr int arity = 2;  ///< dz, x

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor u);
};

/// Of each window of the first input, the element at the place of the largest of the second, which
/// is of the same shape: the gradient of max_pool_gradient, in one pass.
struct max_pool_pick : pooling {
  static constexpr std::string_view name = "max_pool_pick";
  static constexpr int arity = 2;  ///< u, x

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dy);
};
}  // namespace deft::op

namespace deft {

/// The largest element of each window of images x (batch, height, width, channels), float or
/// double, channel by channel; NaN if any element is NaN. The stride is the window's extents unless
/// given: `max_pool(x, window<2>)`, `max_pool(x, window<3>, stride<2>, padding::same)`. What is
/// added as padding does not count. Throws invalid_argument if the windows do not fit into the
/// images; for `dyn` extents the run does.
template <ext::expression X, int Height, int Width, padding_mode P = padding_mode::valid,
          class K = ext::kernels_for<X>>
auto max_pool(const X& x, window_t<Height, Width>, padding_t<P> = {},
              ext::source_location w = ext::here()) {
  return detail::pool<op::max_pool, K, window_t<Height, Width>, stride_t<Height, Width>,
                      P == padding_mode::same>(x, w);
}
/// The same with a stride of its own, down and to the right: `max_pool(x, window<3>, stride<2>)`.
template <ext::expression X, int Height, int Width, int Down, int Right,
          padding_mode P = padding_mode::valid, class K = ext::kernels_for<X>>
auto max_pool(const X& x, window_t<Height, Width>, stride_t<Down, Right>, padding_t<P> = {},
              ext::source_location w = ext::here()) {
  return detail::pool<op::max_pool, K, window_t<Height, Width>, stride_t<Down, Right>,
                      P == padding_mode::same>(x, w);
}
/// The same with window, stride and padding known only at run time:
/// `max_pool(x, {.window = {3, 3}, .stride = {2, 2}, .padding = padding::same})`.
template <ext::expression X, class K = ext::kernels_for<X>>
any_tensor max_pool(const X& x, const pool_options& options, ext::source_location w = ext::here()) {
  return detail::apply<K>(detail::pooling_of<op::max_pool>(options), w, x);
}

/// @cond refused
template <ext::expression X, class... Given>
requires(detail::no_windows<Given...>) detail::refused max_pool(const X&, const Given&...) {
  static_assert(detail::takes<op::max_pool, detail::got<X>, Given...>,
                "[max_pool] expects a window, stride and padding as types, in that order, and got "
                "others: max_pool(x, window<3>, stride<2>, padding::same)");
  return {};
}
/// @endcond

}  // namespace deft

template <class N>
auto deft::op::max_pool::grad(const N& n, any_tensor dz) {
  return detail::pool_gradient<max_pool_gradient>(n.attr(), dz, n.template in<0>());
}
// Both are linear in their first input, and the places do not move with the second.
template <class N>
auto deft::op::max_pool_gradient::grad(const N& n, any_tensor u) {
  return std::tuple{detail::pool_gradient<max_pool_pick>(n.attr(), u, n.template in<1>()),
                    any_tensor()};
}
template <class N>
auto deft::op::max_pool_pick::grad(const N& n, any_tensor dy) {
  return std::tuple{detail::pool_gradient<max_pool_gradient>(n.attr(), dy, n.template in<1>()),
                    any_tensor()};
}
