// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/windows.hpp: windows over images (batch, height, width, channels).
#pragma once
#include <compare>
#include <deft/op/base/windows.hpp>

namespace deft::ext {

/// Which windows an element is in, or which elements of an image a window has.
struct index_range {
  std::int64_t begin, end;
  DEFT_HD std::int64_t size() const { return end - begin; }
};

/// Windows along one axis of images.
struct window_axis {
  std::int64_t extent = 0, window = 1, stride = 1, before = 0, count = 0;

  window_axis() = default;
  window_axis(std::int64_t in, std::int64_t taps, std::int64_t step, bool same, std::int64_t out)
      : extent(in),
        window(taps),
        stride(step),
        before(same ? op::padding_before(in, taps, step, out) : 0),
        count(out) {}
  auto operator<=>(const window_axis&) const = default;

  /// Where window i begins: negative in the padding.
  DEFT_HD std::int64_t first(std::int64_t i) const { return i * stride - before; }
  DEFT_HD index_range elements(std::int64_t i) const {
    const std::int64_t begin = first(i), end = begin + window;
    return {begin < 0 ? 0 : begin, end < extent ? end : extent};
  }
  /// The windows that have element x.
  DEFT_HD index_range windows(std::int64_t x) const {
    const std::int64_t at = x + before, last = at / stride + 1;
    return {at < window ? 0 : (at - window) / stride + 1, last < count ? last : count};
  }
};

/// Windows over both axes of images.
struct image_windows {
  std::int64_t batch = 0, channels = 0;
  window_axis height, width;

  image_windows() = default;
  /// Over images of the extents x, for results of the extents y. Op: what has strides and padding.
  template <class Op>
  image_windows(const Op& o, const dims& x, const dims& window, const dims& y)
      : batch(x[0]),
        channels(x[3]),
        height(x[1], window[0], o.stride[0], o.same, y[1]),
        width(x[2], window[1], o.stride[1], o.same, y[2]) {}
  auto operator<=>(const image_windows&) const = default;

  /// Elements of an image, windows over it, and elements of a window.
  std::int64_t image() const { return height.extent * width.extent * channels; }
  std::int64_t pixels() const { return height.count * width.count; }
  std::int64_t depth() const { return height.window * width.window * channels; }
};

}  // namespace deft::ext
