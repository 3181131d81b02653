// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/conv2d.ipp: convolution and its gradients, without im2col: the elements of a row
// of a window follow each other in an image (padded in a thread's memory, where it has to be), so
// that tiles of pixels by outputs are summed in registers straight from it.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <deft/kernels/cpu/conv2d_filter.ipp>
#include <deft/kernels/cpu/kernel_base.hpp>
#include <deft/kernels/cpu/tile_sums.hpp>
#include <deft/kernels/cpu/windows.hpp>
#include <deft/kernels/team.hpp>

namespace deft::ext::cpu {
namespace {

/// P windows by the columns of a panel: `rows` rows of `length` elements, `row` apart.
template <int P, int L, class T>
void tile(const std::array<const T*, P>& from, std::int64_t rows, std::int64_t row,
          std::int64_t length, const T* panel, const std::array<T*, P>& to, int some,
          std::int64_t columns, tile_leaves<T, L, P>& leaves) {
  tile_sums<T, L, P> sums(leaves);
  auto& sum = sums.sum.v;
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* x[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) x[p] = from[static_cast<std::size_t>(p)] + r * row;
    for (std::int64_t i = 0; i < length; sums.added())
      for (const std::int64_t end = i + sums.take(length - i); i < end; ++i, panel += L) {
        const auto taps = load<T, L>(panel);
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) sum[p] = multiply_add(broadcast<T, L>(x[p][i]), taps, sum[p]);
      }
  }
  sums.end();
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p)
    if (p < some) store_columns<L>(to[static_cast<std::size_t>(p)], sum[p], columns);
}

/// The same of one column, a register of a row at a time: rows of the column are `padded` with
/// zeros.
template <int P, class T>
void dots(const std::array<const T*, P>& from, std::int64_t rows, std::int64_t row,
          std::int64_t length, const T* column, std::int64_t padded, const std::array<T*, P>& to,
          int some, tile_leaves<T, register_lanes<T>, P>& leaves) {
  constexpr int W = register_lanes<T>;
  tile_sums<T, W, P> sums(leaves);
  auto& sum = sums.sum.v;
  for (std::int64_t r = 0; r < rows; ++r, column += padded) {
    std::int64_t i = 0;
    for (; i + W <= length; sums.added())
      for (const std::int64_t end = i + W * sums.take((length - i) / W); i < end; i += W) {
        const auto taps = load<T, W>(column + i);
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p)
          sum[p] = multiply_add(load<T, W>(from[static_cast<std::size_t>(p)] + r * row + i), taps,
                                sum[p]);
      }
    if (i == length) continue;
    const auto taps = load<T, W>(column + i);
    sums.take(1);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p)
      sum[p] = multiply_add(
          load_some<W>(from[static_cast<std::size_t>(p)] + r * row + i, length - i, T(0)), taps,
          sum[p]);
    sums.added();
  }
  sums.end();
  for (int p = 0; p < some; ++p) {
    T lanes[W];
    store(lanes, sum[p]);
    for (int w = W / 2; w > 0; w /= 2)
      for (int l = 0; l < w; ++l) lanes[l] += lanes[l + w];
    *to[static_cast<std::size_t>(p)] = lanes[0];
  }
}

/// Packs `value(i, j)` for i < depth, j < n into panels.
template <class T, class F>
void pack_panels(std::int64_t depth, std::int64_t n, T* to, F&& value) {
  each_panel<T>(n, [&]<int R>(std::int64_t first, std::int64_t columns) {
    constexpr std::int64_t L = R * register_lanes<T>;
    T* const panel = to + depth * first;
    constexpr std::int64_t some = 64;
    parallel_chunks(
        (depth + some - 1) / some, static_cast<double>(depth * columns), [&](std::int64_t piece) {
          for (std::int64_t i = piece * some; i < std::min(depth, (piece + 1) * some); ++i) {
            T* const row = panel + i * L;
            for (std::int64_t l = 0; l < columns; ++l) row[l] = value(i, first + l);
            for (std::int64_t l = columns; l < L; ++l) row[l] = 0;
          }
        });
  });
}

/// One pass over images: each window times panels gives the channels of a pixel of the result.
/// A convolution is one; the gradient by its input is one for each phase of the stride.
struct pass : windows {
  std::int64_t outputs = 0;    ///< channels of the result
  std::int64_t to = 0;         ///< where its first pixel is
  std::int64_t apart[2] = {};  ///< elements from pixel to pixel along height and width

  /// Whether windows are summed along their rows: they would use a few lanes of a panel.
  template <class T>
  bool along_rows() const {
    return outputs <= thresholds::few_outputs && taps[1] * channels >= register_lanes<T>;
  }
  template <class T>
  std::int64_t padded_row() const {
    constexpr std::int64_t W = register_lanes<T>;
    return (taps[1] * channels + W - 1) / W * W;
  }
  /// Elements of the packed filter.
  template <class T>
  std::int64_t packed() const {
    return along_rows<T>() ? outputs * taps[0] * padded_row<T>()
                           : depth() * padded_columns<T>(outputs);
  }
  /// Packs the filter, whose `value(i, j)` is that of tap i for output j.
  template <class T, class F>
  void pack_filter(T* into, F&& value) const {
    if (!along_rows<T>()) return pack_panels(depth(), outputs, into, value);
    const std::int64_t length = taps[1] * channels;
    for (std::int64_t j = 0; j < outputs; ++j)
      for (std::int64_t r = 0; r < taps[0]; ++r, into += padded_row<T>()) {
        for (std::int64_t i = 0; i < length; ++i) into[i] = value(r * length + i, j);
        std::fill(into + length, into + padded_row<T>(), T(0));
      }
  }

  template <class T>
  void run(const T* image, std::int64_t begin, std::int64_t rows, const T* filter,
           T* result) const {
    T* const room =
        static_cast<T*>(thread_scratch(static_cast<std::size_t>(this->room(rows)) * sizeof(T)));
    const T* const x = open(image, begin, rows, room);
    T* const y = result + to + begin * apart[0];
    const std::int64_t length = taps[1] * channels;
    if (along_rows<T>()) {
      constexpr int P = 8;
      const std::int64_t padded = padded_row<T>();
      tile_leaves<T, register_lanes<T>, P> leaves;
      return each_tile<P>(x, y, rows, [&](const auto& from, auto into, int some) {
        for (std::int64_t j = 0; j < outputs; ++j) {
          dots<P>(from, taps[0], row(), length, filter + j * taps[0] * padded, padded, into, some,
                  leaves);
          for (T*& at : into) ++at;
        }
      });
    }
    each_panel<T>(outputs, [&]<int R>(std::int64_t j, std::int64_t columns) {
      constexpr int P = tile_rows<R>, L = R * register_lanes<T>;
      tile_leaves<T, L, P> leaves;
      each_tile<P>(x, y + j, rows, [&](const auto& from, const auto& into, int some) {
        tile<P, L>(from, taps[0], row(), length, filter + depth() * j, into, some, columns, leaves);
      });
    });
  }

 private:
  /// Calls f(windows, pixels, some) for P windows at a time: what is beyond `some` repeats the
  /// last.
  template <int P, class T, class F>
  void each_tile(const T* x, T* y, std::int64_t rows, F&& f) const {
    std::int64_t i = 0, j = 0;
    for (std::int64_t left = rows * count[1]; left > 0; left -= P) {
      const int some = static_cast<int>(std::min<std::int64_t>(left, P));
      std::array<const T*, P> from;
      std::array<T*, P> into;
      for (int p = 0; p < P; ++p) {
        const auto at = static_cast<std::size_t>(p);
        if (p < some) {
          from[at] = x + i * step[0] * row() + j * step[1] * channels;
          into[at] = y + i * apart[0] + j * apart[1];
          if (++j == count[1]) j = 0, ++i;
        } else {
          from[at] = from[at - 1];
          into[at] = into[at - 1];
        }
      }
      f(from, into, some);
    }
  }
};

/// Calls f(image, begin, rows) for bands of rows of every image, several images in a piece where
/// they are small.
template <class F>
void each_band(std::int64_t images, const windows& w, std::int64_t bytes_of_row, double flops,
               F&& f) {
  const std::int64_t band = w.band(bytes_of_row), bands = (w.count[0] + band - 1) / band;
  const double each = flops / static_cast<double>(std::max<std::int64_t>(1, images * bands));
  const auto some = static_cast<std::int64_t>(std::clamp(2e5 / std::max(each, 1.0), 1.0, 1e6));
  const std::int64_t all = images * bands;
  parallel_chunks((all + some - 1) / some, flops / flops_per_nanosecond, [&](std::int64_t piece) {
    for (std::int64_t i = piece * some; i < std::min(all, (piece + 1) * some); ++i) {
      const std::int64_t begin = i % bands * band;
      f(i / bands, begin, std::min(band, w.count[0] - begin));
    }
  });
}

template <class T>
class kernel_of<spec::conv2d, T> final : public spec::conv2d {
  std::size_t scratch() const override {
    return static_cast<std::size_t>(pass_.template packed<T>()) * sizeof(T);
  }
  void ready() override {
    conv2d::ready();
    static_cast<windows&>(pass_) = windows_of(what_);
    pass_.outputs = what_.outputs;
    pass_.apart[0] = out()[2] * out()[3];
    pass_.apart[1] = out()[3];
    flops_ = 2.0 * static_cast<double>(out().elements()) * static_cast<double>(pass_.depth());
    cost_ = 100 + flops_ / flops_per_nanosecond;
  }
  void run(const kernel_call& c) override {
    if (out().elements() == 0) return;
    const T* const x = static_cast<const T*>(c.in[0]);
    const T* const filter = static_cast<const T*>(c.in[1]);
    T* const packed = static_cast<T*>(c.scratch);
    const std::int64_t n = pass_.outputs;
    pass_.pack_filter(packed, [&](std::int64_t i, std::int64_t j) { return filter[i * n + j]; });
    each_band(out()[0], pass_, pass_.row() * pass_.step[0] * static_cast<std::int64_t>(sizeof(T)),
              flops_, [&](std::int64_t b, std::int64_t begin, std::int64_t rows) {
                pass_.run(x + b * pass_.image(), begin, rows, packed,
                          static_cast<T*>(c.out[0]) + b * pass_.pixels() * n);
              });
  }

  pass pass_;
  double flops_ = 0;
};

/// Elements of x whose windows begin at the same phase of the stride see the same taps: each phase
/// is a convolution of dz, of stride 1, with every stride-th row and column of the filter reversed.
/// Neighbours in a row whose windows are the same, as where windows do not overlap, are outputs of
/// one.
template <class T>
class kernel_of<spec::conv2d_input_gradient, T> final : public spec::conv2d_input_gradient {
  std::size_t scratch() const override { return static_cast<std::size_t>(room_) * sizeof(T); }
  void ready() override {
    conv2d_input_gradient::ready();
    const windows of_x = windows_of(what_);
    passes_.clear();
    room_ = 0;
    for (std::int64_t i = 0; i < std::min(op_.stride[0], out()[1]); ++i)
      for (std::int64_t j = 0; j < std::min(op_.stride[1], out()[2]); ++j) add(of_x, {i, j});
    cost_ = 100;
    for (const phase& p : passes_) cost_ += p.flops / flops_per_nanosecond;
  }
  void run(const kernel_call& c) override {
    if (out().elements() == 0) return;
    const T* const dz = static_cast<const T*>(c.in[0]);
    const T* const filter = static_cast<const T*>(c.in[1]);
    T* const packed = static_cast<T*>(c.scratch);
    T* const dx = static_cast<T*>(c.out[0]);
    const std::int64_t width = in(1)[1], channels = in(1)[2], outputs = in(1)[3];
    const std::int64_t image = out()[1] * out()[2] * channels;
    for (const phase& p : passes_) {
      // Outputs beyond the channels are those of the filter's next columns.
      p.pack_filter(packed + p.packed_at, [&](std::int64_t i, std::int64_t channel) {
        const std::int64_t tap = i / outputs;
        const std::int64_t r = p.of[0] + op_.stride[0] * (p.taps[0] - 1 - tap / p.taps[1]);
        const std::int64_t s = p.of[1] + op_.stride[1] * (p.taps[1] - 1 - tap % p.taps[1]);
        return filter[((r * width + s) * channels + channel) * outputs + i % outputs];
      });
      each_band(out()[0], p, p.row() * static_cast<std::int64_t>(sizeof(T)), p.flops,
                [&](std::int64_t b, std::int64_t begin, std::int64_t rows) {
                  p.run(dz + b * p.image(), begin, rows, packed + p.packed_at, dx + b * image);
                });
    }
  }

  struct phase : pass {
    std::int64_t of[2] = {};     ///< the first tap's row and column in the filter
    std::int64_t packed_at = 0;  ///< where its part of the filter is packed
    double flops = 0;

    /// Whether the elements of `p` follow this one's, and have the same windows.
    bool goes_on_with(const phase& p) const {
      return p.to == to + outputs && std::ranges::equal(taps, p.taps) && taps[1] > 0 &&
             std::ranges::equal(first, p.first) && std::ranges::equal(count, p.count);
    }
  };
  /// The phase of the element at `origin`, the first of its phase.
  void add(const windows& of_x, const std::int64_t (&origin)[2]) {
    phase p;
    p.height = in(0)[1], p.width = in(0)[2], p.channels = in(0)[3];
    p.outputs = out()[3];
    for (int a = 0; a < 2; ++a) {
      const std::int64_t stride = of_x.step[a], at = origin[a] - of_x.first[a];
      p.of[a] = at % stride;
      p.taps[a] = of_x.taps[a] > p.of[a] ? (of_x.taps[a] - p.of[a] - 1) / stride + 1 : 0;
      p.count[a] = (out()[1 + a] - origin[a] - 1) / stride + 1;
      p.first[a] = at / stride - p.taps[a] + 1;
    }
    // Without taps, a window of none still yields zeros.
    for (int a = 0; a < 2; ++a)
      if (p.taps[0] * p.taps[1] == 0) p.taps[a] = 0, p.first[a] = 0;
    const std::int64_t row = out()[2] * out()[3];
    p.to = origin[0] * row + origin[1] * out()[3];
    p.apart[0] = of_x.step[0] * row;
    p.apart[1] = of_x.step[1] * out()[3];
    if (!passes_.empty() && passes_.back().goes_on_with(p)) {
      passes_.back().outputs += p.outputs;
    } else {
      p.packed_at = room_;
      passes_.push_back(p);
    }
    phase& last = passes_.back();
    room_ = last.packed_at + last.template packed<T>();
    last.flops = 2.0 * static_cast<double>(out()[0] * last.pixels() * last.outputs) *
                 static_cast<double>(last.depth() + 1);
  }

  std::vector<phase> passes_;
  std::int64_t room_ = 0;
};

}  // namespace
}  // namespace deft::ext::cpu
