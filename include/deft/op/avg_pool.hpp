// SPDX-License-Identifier: Apache-2.0
// deft/op/avg_pool.hpp: the mean of each window of images; and its gradient.
#pragma once
#include <deft/op/base/pooling.hpp>

namespace deft::op {
struct avg_pool : pooling {
  static constexpr std::string_view name = "avg_pool";
  static constexpr int arity = 1;

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dz);
};

/// The gradient of avg_pool, in one pass. Of the second input only the shape is used.
struct avg_pool_gradient : pooling {
  static constexpr std::string_view name = "avg_pool_gradient";
  static constexpr int arity = 2;  ///< dz, x

  tensor_type infer(std::span<const tensor_type> in) const;

  template <class N>
  static auto grad(const N& n, any_tensor dx);
};
}  // namespace deft::op

namespace deft {

/// The mean of each window of images x (batch, height, width, channels), float or double, channel
/// by channel. Arguments as for `max_pool`; the mean is that of the elements within the image,
/// without the padding.
template <ext::expression X, int Height, int Width, padding_mode P = padding_mode::valid,
          class K = ext::kernels_for<X>>
auto avg_pool(const X& x, window_t<Height, Width>, padding_t<P> = {},
              ext::source_location w = ext::here()) {
  return detail::pool<op::avg_pool, K, window_t<Height, Width>, stride_t<Height, Width>,
                      P == padding_mode::same>(x, w);
}
/// The same with a stride of its own, down and to the right: `avg_pool(x, window<3>, stride<2>)`.
template <ext::expression X, int Height, int Width, int Down, int Right,
          padding_mode P = padding_mode::valid, class K = ext::kernels_for<X>>
auto avg_pool(const X& x, window_t<Height, Width>, stride_t<Down, Right>, padding_t<P> = {},
              ext::source_location w = ext::here()) {
  return detail::pool<op::avg_pool, K, window_t<Height, Width>, stride_t<Down, Right>,
                      P == padding_mode::same>(x, w);
}
/// The same with window, stride and padding known only at run time:
/// `avg_pool(x, {.window = {3, 3}, .stride = {2, 2}, .padding = padding::same})`.
template <ext::expression X, class K = ext::kernels_for<X>>
any_tensor avg_pool(const X& x, const pool_options& options, ext::source_location w = ext::here()) {
  return detail::apply<K>(detail::pooling_of<op::avg_pool>(options), w, x);
}

/// @cond refused
template <ext::expression X, class... Given>
requires(detail::no_windows<Given...>) detail::refused avg_pool(const X&, const Given&...) {
  static_assert(detail::takes<op::avg_pool, detail::got<X>, Given...>,
                "[avg_pool] expects a window, stride and padding as types, in that order, and got "
                "others: avg_pool(x, window<3>, stride<2>, padding::same)");
  return {};
}
/// @endcond

}  // namespace deft

template <class N>
auto deft::op::avg_pool::grad(const N& n, any_tensor dz) {
  return detail::pool_gradient<avg_pool_gradient>(n.attr(), dz, n.template in<0>());
}
template <class N>
auto deft::op::avg_pool_gradient::grad(const N& n, any_tensor dx) {
  const avg_pool_gradient o = n.attr();
  const output in[] = {dx.handle()};
  return std::tuple{
      detail::apply_any(detail::pooling_of<avg_pool>(o.window, o.stride, o.same), in, {}),
      any_tensor()};
}
