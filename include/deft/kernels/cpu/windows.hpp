// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/windows.hpp: what kernels of convolutions work on: windows over images, and
// panels of columns as wide as a few registers.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/kernels/cpu/pack.hpp>
#include <deft/kernels/spec/conv2d.hpp>
#include <deft/plan/thresholds.hpp>

namespace deft::ext::cpu {

/// As measured, of a thread.
inline constexpr double flops_per_nanosecond = 100;
using thresholds::band_bytes;

template <class T>
inline constexpr int register_lanes = register_bytes / sizeof(T);
/// Registers of a panel at most: tiles of these and `tile_rows` fill the machine's registers.
inline constexpr int most_registers = register_bytes >= 64 ? 4 : 2;
template <int Registers>
inline constexpr int tile_rows = Registers == most_registers ? 6 : 8;

/// Columns cut into panels of 1, 2 or 4 registers. Calls f.operator()<Registers>(first, columns) of
/// each; a panel's lanes beyond `columns` are 0.
template <class T, class F>
void each_panel(std::int64_t n, F&& f) {
  constexpr int W = register_lanes<T>;
  for (std::int64_t j = 0; j < n;) {
    const std::int64_t left = n - j;
    if (most_registers == 4 && left > 2 * W) {
      f.template operator()<most_registers>(j, std::min<std::int64_t>(left, most_registers * W));
      j += most_registers * W;
    } else if (left > W) {
      f.template operator()<2>(j, std::min<std::int64_t>(left, 2 * W));
      j += 2 * W;
    } else {
      f.template operator()<1>(j, left);
      j += W;
    }
  }
}
/// Columns of all panels: a panel of `depth` rows begins at depth * first.
template <class T>
std::int64_t padded_columns(std::int64_t n) {
  constexpr std::int64_t W = register_lanes<T>;
  std::int64_t wide = 0;
  each_panel<T>(n, [&]<int R>(std::int64_t first, std::int64_t) { wide = first + R * W; });
  return wide;
}

template <int L, class T>
DEFT_ALWAYS_INLINE void store_columns(T* to, const pack<T, L>& p, std::int64_t columns) {
  if (columns == L) return store(to, p);
  T whole[L];
  store(whole, p);
  std::memcpy(to, whole, static_cast<std::size_t>(columns) * sizeof(T));
}

/// Windows over images (height, width, channels) of one batch: where they begin and what they hold.
struct windows {
  std::int64_t height = 0, width = 0, channels = 0;  ///< of an image
  std::int64_t first[2] = {0, 0};  ///< where the first window begins; negative: in the padding
  std::int64_t step[2] = {1, 1};   ///< from window to window
  std::int64_t taps[2] = {1, 1};   ///< height and width of a window
  std::int64_t count[2] = {0, 0};  ///< windows along height and width

  std::int64_t depth() const { return taps[0] * taps[1] * channels; }
  std::int64_t image() const { return height * width * channels; }
  std::int64_t pixels() const { return count[0] * count[1]; }
  std::int64_t span(int axis, std::int64_t n) const { return (n - 1) * step[axis] + taps[axis]; }
  bool lie_within() const {
    return first[0] >= 0 && first[1] >= 0 && first[0] + span(0, count[0]) <= height &&
           first[1] + span(1, count[1]) <= width;
  }
  /// Elements from row to row where windows are read.
  std::int64_t row() const { return (lie_within() ? width : span(1, count[1])) * channels; }
  /// Rows of windows that are worked on at a time.
  std::int64_t band(std::int64_t bytes_of_row) const {
    return std::clamp<std::int64_t>(band_bytes / std::max<std::int64_t>(1, bytes_of_row), 1,
                                    std::max<std::int64_t>(1, count[0]));
  }
  /// Elements that `open` needs for that many rows of windows.
  std::int64_t room(std::int64_t rows) const { return lie_within() ? 0 : span(0, rows) * row(); }

  /// The first window of row `begin`: in the image, or in a padded copy of it.
  template <class T>
  const T* open(const T* x, std::int64_t begin, std::int64_t rows, T* padded) const {
    const std::int64_t top = first[0] + begin * step[0], wide = span(1, count[1]);
    if (lie_within()) return x + (top * width + first[1]) * channels;
    const std::int64_t left = std::clamp<std::int64_t>(-first[1], 0, wide);
    const std::int64_t end = std::clamp<std::int64_t>(width - first[1], left, wide);
    for (std::int64_t r = 0; r < span(0, rows); ++r) {
      T* to = padded + r * wide * channels;
      const std::int64_t y = top + r;
      const bool inside = y >= 0 && y < height && end > left;
      const std::int64_t front = inside ? left : wide;
      std::fill(to, to + front * channels, T(0));
      if (!inside) continue;
      std::memcpy(to + left * channels, x + (y * width + first[1] + left) * channels,
                  static_cast<std::size_t>((end - left) * channels) * sizeof(T));
      std::fill(to + end * channels, to + wide * channels, T(0));
    }
    return padded;
  }
};

/// The windows of a convolution: x to result.
inline windows windows_of(const image_convolution& c) {
  windows w{c.height.extent, c.width.extent, c.channels};
  int i = 0;
  for (const window_axis* a : {&c.height, &c.width}) {
    w.step[i] = a->stride;
    w.taps[i] = a->window;
    w.count[i] = a->count;
    w.first[i++] = -a->before;
  }
  return w;
}

}  // namespace deft::ext::cpu
