// SPDX-License-Identifier: Apache-2.0
// deft/train/layers_convolution.hpp: convolutions of images with variables of their own.
#pragma once
#include <deft/op/conv2d.hpp>
#include <deft/train/layers_common.hpp>

namespace deft {

/// Options of a conv2d with variables of its own.
struct conv2d_layer_options {
  activation_function activation = {};                     ///< `.activation = relu`
  std::optional<deft::initializer> initializer = {};       ///< of the filters; glorot_uniform()
  std::optional<deft::initializer> bias_initializer = {};  ///< zeros()
  deft::regularizer regularizer = {};  ///< of the filters; its loss is added as by add_loss
  bool bias = true;                    ///< whether the layer has a bias
  bool shared = false;                 ///< as in dense_options
};

namespace detail {
/// Whether neither filters nor a window follow the images, or no name; Filters: how many arguments
/// of the template say their number.
template <std::size_t Filters, class... Given>
inline constexpr bool no_convolution = true;
template <std::size_t Filters, class First>
inline constexpr bool no_convolution<Filters, First> =
    Filters == 0 ? std::integral<First> : !text<First>;
template <std::size_t Filters, class First, class Second, class... More>
inline constexpr bool no_convolution<Filters, First, Second, More...> =
    Filters == 0
        ? std::integral<First> && !std::convertible_to<const Second&, dims>
        : !text<First> && !std::integral<First> && (!text<Second> || starts_with_move<More...>);
}  // namespace detail

/// activation(conv2d(x, kernel) + bias) for images x (batch, height, width, channels), with
/// variables NAME/kernel of (size, channels, filters) and NAME/bias of (filters) under the name
/// scopes in force: `conv2d(x, 32, {5, 5}, "conv1", {.activation = relu})`. Where the graph has
/// them already, they are used again. Throws invalid_argument if x is not floating or its channels
/// are unknown, if variables of these names have other shapes, and what conv2d throws.
any_tensor conv2d(const any_tensor& x, std::int64_t filters, const dims& size,
                  std::string_view name, const conv2d_layer_options& options = {},
                  const conv2d_options& windows = {.padding = padding_mode::same},
                  ext::source_location w = ext::here());

/// The same, known at compile time: for x of (?,28,28,1), `conv2d<32>(x, window<5>, "conv1")` is
/// (?,28,28,32), and `conv2d<32>(x, window<5>, "conv1", {}, stride<2>, padding::valid)` is
/// (?,12,12,32).
template <std::int64_t Filters, ext::typed_expression X, int Height, int Width, int Down = 1,
          int Across = 1, padding_mode P = padding_mode::same, class K = ext::kernels_for<X>>
auto conv2d(const X& x, window_t<Height, Width> size, std::string_view name,
            const conv2d_layer_options& options = {}, stride_t<Down, Across> moved = {},
            padding_t<P> = {}, ext::source_location w = ext::here()) {
  constexpr dims images = ext::shape_type_of<X>::value;
  static_assert(images.n == 4 && images.e[3] != dyn,
                "[conv2d] expects images (batch, height, width, channels) whose channels are "
                "known, and got others");
  if constexpr (images.n == 4 && images.e[3] != dyn) {
    using filters = shape_t<Height, Width, images.e[3], Filters>;
    using shape = detail::convolved<ext::shape_type_of<X>, filters, stride_t<Down, Across>,
                                    P == padding_mode::same>;
    static_assert(shape::possible,
                  "[conv2d] expects a window that fits into the images and a stride of 1 or more");
    return ext::tensor_of<ext::value_type_of<X>, shape>(
        conv2d(any_tensor(detail::any_lower<K>(x, w)), Filters, size.value, name, options,
               {moved.value, P}, w)
            .handle());
  }
}
/// @cond refused
template <std::int64_t... Filters, ext::expression X, class... Given>
requires(detail::no_convolution<sizeof...(Filters), Given...>) detail::refused
    conv2d(const X&, const Given&...) {
  static_assert(
      detail::takes<op::conv2d, detail::got<X>, detail::got<Given>...>,
      "[conv2d] expects filters, or their number, a window and a name: conv2d(x, w), "
      "conv2d<32>(x, window<5>, \"conv1\"), or conv2d(x, 32, {5, 5}, \"conv1\"); a stride "
      "follows the options: conv2d<32>(x, window<5>, \"conv1\", {}, stride<2>)");
  return {};
}
template <std::int64_t Filters, ext::typed_expression X, int Height, int Width>
detail::refused conv2d(const X& x, window_t<Height, Width> size, const conv2d_layer_options&) {
  return conv2d<Filters>(x, size);
}
template <std::int64_t Filters, ext::typed_expression X>
detail::refused conv2d(const X&, std::string_view, const conv2d_layer_options& = {}) {
  static_assert(detail::takes<op::conv2d, detail::got<X>>,
                "[conv2d] expects a window, as in conv2d<32>(x, window<5>, \"conv1\")");
  return {};
}
template <std::int64_t Filters, ext::typed_expression X, std::integral Size>
detail::refused conv2d(const X&, Size, std::string_view, const conv2d_layer_options& = {}) {
  static_assert(detail::takes<op::conv2d, detail::got<X>, Size>,
                "[conv2d] expects a window, and got a number: conv2d<32>(x, window<5>, \"conv1\")");
  return {};
}
/// @endcond

}  // namespace deft
