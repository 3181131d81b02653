// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/windows.hpp: windows over images (batch, height, width, channels), as threads
// find them.
#pragma once
#include <algorithm>
#include <compare>
#include <deft/kernels/gpu/divider.hpp>
#include <deft/op/base/windows.hpp>

namespace deft::ext::gpu {

/// Which windows an element is in, or which elements of an image a window has.
struct index_range {
  std::int64_t begin, end;
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

}  // namespace deft::ext::gpu
