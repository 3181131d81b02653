// SPDX-License-Identifier: Apache-2.0
// deft/op/base/windows.hpp: windows that move over images, as of convolution and pooling: stride
// and padding, and how many fit.
#pragma once
#include <deft/op/base/shapes.hpp>

namespace deft {

/// What is done at the borders of an image.
enum class padding_mode : std::uint8_t {
  valid,  ///< nothing: windows lie within the image
  same,   ///< zeros are added, half of them in front, so that every stride-th element has a window
};
/// Padding known at compile time: `padding::same`, `padding::valid`.
template <padding_mode M>
struct padding_t {
  static constexpr bool same = M == padding_mode::same;
  constexpr operator padding_mode() const { return M; }  // NOLINT: for fields of options
};

namespace padding {
inline constexpr padding_t<padding_mode::valid> valid{};
inline constexpr padding_t<padding_mode::same> same{};
}  // namespace padding

/// The distance between windows along height and width: `stride<2>`, `stride<2, 1>`.
template <int Height, int Width>
struct stride_t {
  static constexpr dims value{Height, Width};
};
template <int Height, int Width = Height>
inline constexpr stride_t<Height, Width> stride{};

/// The height and width of a window: `window<2>`, `window<3, 1>`.
template <int Height, int Width>
struct window_t {
  static constexpr dims value{Height, Width};
};
template <int Height, int Width = Height>
inline constexpr window_t<Height, Width> window{};

}  // namespace deft

namespace deft::op {

/// Why windows do not lie on images.
enum class window_fault : std::uint8_t {
  none,
  rank,         ///< of the images
  window_rank,  ///< of the filters or the window
  channels,
  stride,
  extent,  ///< a window without elements
  window,  ///< it is larger than the images
  elements,
};

/// The number of windows along an axis; dyn if it is not known. False if there is none.
/// Of `same`: ceil(in / stride); of `valid`: floor((in - window) / stride) + 1.
constexpr bool count_windows(std::int64_t in, std::int64_t window, std::int64_t stride, bool same,
                             std::int64_t& out) {
  if (in == dyn || (window == dyn && !same)) {
    out = dyn;
    return true;
  }
  if (!same && window > in) return false;
  out = same ? (in == 0 ? 0 : (in - 1) / stride + 1) : (in - window) / stride + 1;
  return true;
}
/// Zeros in front of an axis; one more follows it if their number is odd.
constexpr std::int64_t padding_before(std::int64_t in, std::int64_t window, std::int64_t stride,
                                      std::int64_t out) {
  const std::int64_t all = (out - 1) * stride + window - in;
  return all > 0 ? all / 2 : 0;
}

/// The shape of (batch, height, width, channels) after windows of these two extents.
constexpr window_fault window_shape(const dims& x, const dims& window, const dims& stride,
                                    bool same, std::int64_t channels, dims& out) {
  if (x.n != 4) return window_fault::rank;
  for (int i = 0; i < 2; ++i) {
    if (window.e[i] < 1 && window.e[i] != dyn) return window_fault::extent;
    if (window.e[i] > max_elements) return window_fault::window;
  }
  if (stride.n != 2 || stride.e[0] < 1 || stride.e[1] < 1) return window_fault::stride;
  out = {x.e[0], 0, 0, channels};
  for (int i = 0; i < 2; ++i)
    if (!count_windows(x.e[1 + i], window.e[i], stride.e[i], same, out.e[1 + i]))
      return window_fault::window;
  return is_sound(out) ? window_fault::none : window_fault::elements;
}

/// Throws invalid_argument for an operation on images and `other`: the shape of filters if
/// `filters` is set, or a window.
[[noreturn]] void refuse_windows(std::string_view op, window_fault f, const dims& x, bool filters,
                                 const dims& other, const dims& stride, bool same);

}  // namespace deft::op

namespace deft::detail {
template <class X>
inline constexpr bool is_images = extents_of<X>.n == 4;
/// Whether the first is a window, or a stride or padding; false if there is none.
template <class...>
inline constexpr bool starts_with_window = false;
template <int Height, int Width, class... More>
inline constexpr bool starts_with_window<window_t<Height, Width>, More...> = true;
template <class...>
inline constexpr bool starts_with_move = false;
template <int Down, int Right, class... More>
inline constexpr bool starts_with_move<stride_t<Down, Right>, More...> = true;
template <padding_mode P, class... More>
inline constexpr bool starts_with_move<padding_t<P>, More...> = true;
}  // namespace deft::detail
