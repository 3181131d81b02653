// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/conv2d_filter.ipp: the gradient of a convolution by its filter.
#pragma once
#include <deft/kernels/cpu/kernel_base.hpp>
#include <deft/kernels/cpu/row_reduction.hpp>
#include <deft/kernels/cpu/tile_sums.hpp>
#include <deft/kernels/cpu/windows.hpp>
#include <deft/kernels/team.hpp>

namespace deft::ext::cpu {
namespace {

/// Adds to P rows of a panel of sums: the elements at `from` of every window times the window's row
/// of dz.
template <int P, int L, class T>
void add_windows(const std::array<const T*, P>& from, const windows& w, std::int64_t rows,
                 const T* dz, std::int64_t apart, T* sums, int some, tile_leaves<T, L, P>& leaves) {
  tile_sums<T, L, P> all(leaves);
  auto& sum = all.sum.v;
  const std::int64_t step = w.step[1] * w.channels, row = w.step[0] * w.row();
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* x[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) x[p] = from[static_cast<std::size_t>(p)] + r * row;
    for (std::int64_t j = 0, i = 0; j < w.count[1]; all.added())
      for (const std::int64_t end = j + all.take(w.count[1] - j); j < end;
           ++j, i += step, dz += apart) {
        const auto d = load<T, L>(dz);
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) sum[p] = multiply_add(broadcast<T, L>(x[p][i]), d, sum[p]);
      }
  }
  all.end();
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p)
    if (p < some) store(sums + p * L, load<T, L>(sums + p * L) + sum[p]);
}

/// Groups of images are summed on their own, and then added up; where the filter is too large for
/// that, pieces are rows of it.
template <class T>
class kernel_of<spec::conv2d_filter_gradient, T> final : public spec::conv2d_filter_gradient {
  std::size_t scratch() const override {
    return static_cast<std::size_t>(groups_ * levels_ * part()) * sizeof(T);
  }
  void ready() override {
    conv2d_filter_gradient::ready();
    w_ = windows_of(what_);
    images_ = what_.batch;
    n_ = what_.outputs;
    wide_ = padded_columns<T>(n_);
    constexpr std::int64_t pieces = thresholds::filter_pieces;
    const std::int64_t bytes = part() * static_cast<std::int64_t>(sizeof(T));
    groups_ = std::clamp<std::int64_t>(
        thresholds::filter_part_bytes * pieces / std::max<std::int64_t>(1, bytes), 1,
        std::clamp<std::int64_t>(images_, 1, pieces));
    ranges_ = std::clamp<std::int64_t>(
        pieces / groups_, 1, std::max<std::int64_t>(1, w_.depth() / thresholds::filter_rows));
    const std::int64_t bands =
        (images_ + groups_ - 1) / groups_ * ((w_.count[0] + band() - 1) / band());
    levels_ = 1;
    for (std::int64_t sums = bands; sums > addends_together && levels_ < 3; ++levels_)
      sums /= addends_together;
    offsets_.clear();
    for (std::int64_t r = 0; r < w_.taps[0]; ++r)
      for (std::int64_t i = 0; i < w_.taps[1] * w_.channels; ++i)
        offsets_.push_back(r * w_.row() + i);
    flops_ = 2.0 * static_cast<double>(in(0).elements()) * static_cast<double>(w_.depth());
    cost_ = 100 + flops_ / flops_per_nanosecond;
  }
  void run(const kernel_call& c) override {
    if (out().elements() == 0) return;
    const T* const dz = static_cast<const T*>(c.in[0]);
    const T* const x = static_cast<const T*>(c.in[1]);
    T* const parts = static_cast<T*>(c.scratch);
    T* const dw = static_cast<T*>(c.out[0]);
    const std::int64_t depth = w_.depth(), images = (images_ + groups_ - 1) / groups_;
    const std::int64_t range = (depth + ranges_ - 1) / ranges_;
    parallel_chunks(groups_ * ranges_, flops_ / flops_per_nanosecond, [&](std::int64_t piece) {
      const std::int64_t g = piece / ranges_, begin = piece % ranges_ * range;
      add_images(x, dz, g * images, std::min(images_, (g + 1) * images), begin,
                 std::min(depth, begin + range), parts + g * levels_ * part());
    });
    constexpr std::int64_t some = 64;
    parallel_chunks((depth + some - 1) / some, static_cast<double>(groups_ * part()) / 10,
                    [&](std::int64_t piece) {
                      each_panel<T>(n_, [&]<int R>(std::int64_t j, std::int64_t columns) {
                        constexpr int L = R * register_lanes<T>;
                        for (std::int64_t i = piece * some; i < std::min(depth, (piece + 1) * some);
                             ++i) {
                          const T* from = parts + (levels_ - 1) * part() + depth * j + i * L;
                          auto sum = load<T, L>(from);
                          for (std::int64_t g = 1; g < groups_; ++g)
                            sum = sum + load<T, L>(from += levels_ * part());
                          store_columns<L>(dw + i * n_ + j, sum, columns);
                        }
                      });
                    });
  }

  std::int64_t part() const { return w_.depth() * wide_; }
  /// Rows of windows that are worked on at a time.
  std::int64_t band() const {
    return w_.band(w_.count[1] * n_ * static_cast<std::int64_t>(sizeof(T)));
  }

  /// Calls f(sums, count) for the sums of the rows [begin, end) of the filter, panel by panel.
  template <class F>
  void each_run(T* sums, std::int64_t begin, std::int64_t end, F&& f) const {
    each_panel<T>(n_, [&]<int R>(std::int64_t j, std::int64_t) {
      constexpr int L = R * register_lanes<T>;
      f(sums + w_.depth() * j + begin * L, (end - begin) * L);
    });
  }
  /// Sums of a level are added to those of the next one, where so many have been added that it is
  /// time (all, at the end), as in long_sum.
  void carry(T* sums, std::int64_t bands, std::int64_t begin, std::int64_t end, bool all) const {
    for (std::int64_t l = 1, each = addends_together; l < levels_; ++l, each *= addends_together) {
      if (!all && bands % each != 0) return;
      each_run(sums + (l - 1) * part(), begin, end, [&](T* from, std::int64_t n) {
        fold<T, plus>::into(from + part(), from, n);
        std::fill(from, from + n, T(0));
      });
    }
  }

  /// Sums of some images for the rows [begin, end) of the filter.
  void add_images(const T* x, const T* dz, std::int64_t first, std::int64_t last,
                  std::int64_t begin, std::int64_t end, T* sums) const {
    if (begin >= end) return;
    for (std::int64_t l = 0; l < levels_; ++l)
      each_run(sums + l * part(), begin, end,
               [](T* from, std::int64_t n) { std::fill(from, from + n, T(0)); });
    const std::int64_t row = w_.count[1] * n_, band = this->band();
    std::int64_t bands = 0;
    // A panel that is not full, or is read several times, is read from a copy: rows that are a
    // power of two apart share a few lines of the cache.
    constexpr std::int64_t widest = most_registers * register_lanes<T>;
    const std::int64_t image = w_.room(band), copy = band * w_.count[1] * widest;
    T* const room =
        static_cast<T*>(thread_scratch(static_cast<std::size_t>(image + copy) * sizeof(T)));
    for (std::int64_t b = first; b < last; ++b)
      for (std::int64_t at = 0; at < w_.count[0]; at += band) {
        const std::int64_t rows = std::min(band, w_.count[0] - at);
        const T* const windows = w_.open(x + b * w_.image(), at, rows, room);
        const T* const gradient = dz + (b * w_.count[0] + at) * row;
        each_panel<T>(n_, [&]<int R>(std::int64_t j, std::int64_t columns) {
          constexpr int P = tile_rows<R>, L = R * register_lanes<T>;
          const T* from = gradient + j;
          std::int64_t apart = n_;
          if (columns < L || end - begin > thresholds::rows_of_panel * P) {
            T* to = room + image;
            for (std::int64_t i = 0; i < rows * w_.count[1]; ++i, to += L) {
              std::memcpy(to, from + i * n_, static_cast<std::size_t>(columns) * sizeof(T));
              std::fill(to + columns, to + L, T(0));
            }
            from = room + image, apart = L;
          }
          tile_leaves<T, L, P> leaves;
          for (std::int64_t i = begin; i < end; i += P) {
            const int some = static_cast<int>(std::min<std::int64_t>(end - i, P));
            std::array<const T*, P> elements;
            for (int p = 0; p < P; ++p)
              elements[static_cast<std::size_t>(p)] =
                  windows + offsets_[static_cast<std::size_t>(i + std::min(p, some - 1))];
            add_windows<P, L>(elements, w_, rows, from, apart, sums + w_.depth() * j + i * L, some,
                              leaves);
          }
        });
        carry(sums, ++bands, begin, end, false);
      }
    carry(sums, bands, begin, end, true);
  }

  windows w_;
  std::int64_t images_ = 0, n_ = 0, wide_ = 0;
  std::int64_t groups_ = 1;            ///< of images
  std::int64_t ranges_ = 1;            ///< of rows of the filter
  std::int64_t levels_ = 1;            ///< of sums of a group, the last one of which is complete
  std::vector<std::int64_t> offsets_;  ///< of those rows in a window
  double flops_ = 0;
};

}  // namespace
}  // namespace deft::ext::cpu
