// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/pool.ipp: max_pool, avg_pool and their gradients: a register of channels at a
// time over the elements of each window.
#pragma once
#include <algorithm>
#include <bit>
#include <deft/kernels/cpu/kernel_base.hpp>
#include <deft/kernels/cpu/pack.hpp>
#include <deft/kernels/cpu/row_reduction.hpp>
#include <deft/kernels/spec/long_sum.hpp>
#include <deft/kernels/spec/pool.hpp>
#include <deft/kernels/team.hpp>

namespace deft::ext::cpu {
namespace {

/// The elements of a window that are in the image.
struct clipped {
  index_range down, across;
  clipped(const image_windows& w, std::int64_t i, std::int64_t j)
      : down(w.height.elements(i)), across(w.width.elements(j)) {}
  std::int64_t count() const { return down.size() * across.size(); }
};
/// Where the first of them is, from the image's first.
std::int64_t first_of(const image_windows& w, const clipped& c) {
  return (c.down.begin * w.width.extent + c.across.begin) * w.channels;
}
/// Calls f(offset) for each of them, in order.
template <class F>
DEFT_ALWAYS_INLINE void each_of(const image_windows& l, const clipped& c, F&& f) {
  for (std::int64_t h = c.down.begin; h < c.down.end; ++h)
    for (std::int64_t w = c.across.begin; w < c.across.end; ++w)
      f((h * l.width.extent + w) * l.channels);
}
/// As measured with windows of 2x2: 6 for a register of channels of each element.
template <class T>
double pooling_nanoseconds(const image_windows& w) {
  constexpr std::int64_t lanes = register_bytes / sizeof(T);
  const std::int64_t rest = w.channels % lanes;
  double registers = static_cast<double>(w.channels / lanes);
  registers += rest > thresholds::few_channels ? 1 : 0.25 * static_cast<double>(rest);
  registers *= static_cast<double>(w.batch * w.pixels());
  for (const window_axis* a : {&w.height, &w.width})
    registers *= static_cast<double>(std::min(a->window, a->extent));
  return 100 + 6 * registers;
}

/// Calls f(channel, n) for registers of channels, n of them: a constant but at the end, and there,
/// too, if they are few.
template <class T, class F>
DEFT_ALWAYS_INLINE void each_register(std::int64_t channels, F&& f) {
  constexpr int L = register_bytes / sizeof(T);
  std::int64_t c = 0;
  for (; c + L <= channels; c += L) f(c, std::integral_constant<std::int64_t, L>());
  static_assert(thresholds::few_channels == 3);
  switch (channels - c) {
    case 0:
      return;
    case 1:
      return f(c, std::integral_constant<std::int64_t, 1>());
    case 2:
      return f(c, std::integral_constant<std::int64_t, 2>());
    case 3:
      return f(c, std::integral_constant<std::int64_t, 3>());
    default:
      f(c, channels - c);
  }
}
/// In a whole register, or in the narrowest where they are few.
template <class T, class N>
DEFT_ALWAYS_INLINE auto load_channels(const T* from, N n) {
  constexpr int L = register_bytes / sizeof(T);
  if constexpr (std::is_same_v<N, std::int64_t>) {
    return load_some<L>(from, n, T(0));
  } else if constexpr (N::value == L) {
    return load<T, L>(from);
  } else {
    constexpr int W = std::max<int>(16 / sizeof(T), std::bit_ceil(std::uint64_t{N::value}));
    if constexpr (N::value == 1)
      return broadcast<T, W>(*from);
    else
      return load_some<W>(from, N::value, T(0));
  }
}
template <class T, class P, class N>
DEFT_ALWAYS_INLINE void store_channels(T* to, const P& p, N n) {
  if constexpr (std::is_same_v<N, std::int64_t>)
    store_some(to, p, n);
  else if constexpr (N::value == 1)
    *to = p.v[0][0];
  else if constexpr (N::value == P::lanes)
    store(to, p);
  else
    store_some(to, p, N::value);
}

/// Images or rows in pieces of some size: calls f(i) for 0 <= i < n.
template <class F>
void in_pieces(std::int64_t n, double nanoseconds, F&& f) {
  const double each = nanoseconds / static_cast<double>(std::max<std::int64_t>(1, n));
  const auto some = static_cast<std::int64_t>(std::clamp(2000 / each, 1.0, 1e6));
  parallel_chunks((n + some - 1) / some, nanoseconds, [&](std::int64_t piece) {
    for (std::int64_t i = piece * some; i < std::min(n, (piece + 1) * some); ++i) f(i);
  });
}

/// Calls f(offset, better) for each element of a window of x: `better` masks the channels where
/// it is larger than all before, or the first NaN.
template <class V, class T, class N, class F>
DEFT_ALWAYS_INLINE void each_better(const image_windows& l, const T* x, const clipped& window, N n,
                                    F&& f) {
  V largest = load_channels(x + first_of(l, window), n);
  each_of(l, window, [&](std::int64_t offset) {
    const V element = load_channels(x + offset, n);
    const auto better = element > largest || (element != element && largest == largest);
    largest = num::select(better, element, largest);
    f(offset, better);
  });
}

template <class Op, class T>
class kernel_of<spec::pool<Op>, T> final : public spec::pool<Op> {
  void ready() override {
    spec::pool<Op>::ready();
    this->cost_ = pooling_nanoseconds<T>(this->windows_);
  }
  void run(const kernel_call& c) override {
    if (this->out().elements() == 0) return;
    const image_windows& l = this->windows_;
    const T* const from = static_cast<const T*>(c.in[0]);
    T* const to = static_cast<T*>(c.out[0]);
    const std::int64_t rows = l.height.count, columns = l.width.count, channels = l.channels;
    in_pieces(l.batch * rows, this->cost_, [&](std::int64_t row) {
      const T* const x = from + row / rows * l.image();
      T* y = to + row * columns * channels;
      for (std::int64_t j = 0; j < columns; ++j, y += channels) {
        const clipped window(l, row % rows, j);
        const T count = static_cast<T>(window.count());
        each_register<T>(channels, [&](std::int64_t channel, auto n) {
          const T* const at = x + channel;
          using V = decltype(load_channels(at, n));
          V v(0);
          if constexpr (spec::pool<Op>::of_largest) {
            v = load_channels(at + first_of(l, window), n);
            each_of(l, window, [&](std::int64_t offset) {
              v = num::maximum(v, load_channels(at + offset, n));
            });
          } else if (window.count() <= addends_together) {
            each_of(l, window, [&](std::int64_t offset) { v = v + load_channels(at + offset, n); });
          } else {
            long_sum<V> sum(v);
            each_of(l, window,
                    [&](std::int64_t offset) { sum.add(load_channels(at + offset, n)); });
            v = sum.total(v);
          }
          if constexpr (!spec::pool<Op>::of_largest) v = v / V(count);
          store_channels(y + channel, v, n);
        });
      }
    });
  }
};

template <class Op, class T>
class kernel_of<spec::pool_gradient<Op>, T> final : public spec::pool_gradient<Op> {
  void ready() override {
    spec::pool_gradient<Op>::ready();
    this->cost_ = 2 * pooling_nanoseconds<T>(this->windows_);
  }
  void run(const kernel_call& c) override {
    if (this->out().elements() == 0) return;
    const image_windows& l = this->windows_;
    const T* const dz = static_cast<const T*>(c.in[0]);
    const T* const x = static_cast<const T*>(c.in[1]);
    T* const dx = static_cast<T*>(c.out[0]);
    const std::int64_t image = l.image(), result = l.pixels() * l.channels;
    in_pieces(l.batch, this->cost_, [&](std::int64_t b) {
      std::fill_n(dx + b * image, image, T(0));
      if constexpr (spec::pool_gradient<Op>::of_largest)
        add_to_largest(x + b * image, dz + b * result, dx + b * image);
      else
        add_everywhere(dz + b * result, dx + b * image);
    });
  }

  /// The elements of a row get the sum over the windows of a row first, which all rows that these
  /// windows cover have in common.
  void add_everywhere(const T* dz, T* dx) const {
    const image_windows& l = this->windows_;
    const std::int64_t channels = l.channels, row = l.width.extent * channels;
    T* const sums = static_cast<T*>(thread_scratch(static_cast<std::size_t>(row) * sizeof(T)));
    for (std::int64_t i = 0; i < l.height.count; ++i) {
      std::fill_n(sums, row, T(0));
      for (std::int64_t j = 0; j < l.width.count; ++j, dz += channels) {
        const clipped window(l, i, j);
        const T count = static_cast<T>(window.count());
        each_register<T>(channels, [&](std::int64_t channel, auto n) {
          using V = decltype(load_channels(dz, n));
          const V part = load_channels(dz + channel, n) / V(count);
          for (std::int64_t w = window.across.begin; w < window.across.end; ++w) {
            T* const to = sums + w * channels + channel;
            store_channels(to, load_channels(to, n) + part, n);
          }
        });
      }
      const index_range rows = l.height.elements(i);
      for (std::int64_t h = rows.begin; h < rows.end; ++h)
        fold<T, plus>::into(dx + h * row, sums, row);
    }
  }
  void add_to_largest(const T* x, const T* dz, T* dx) const {
    const image_windows& l = this->windows_;
    const std::int64_t channels = l.channels;
    for (std::int64_t i = 0; i < l.height.count; ++i)
      for (std::int64_t j = 0; j < l.width.count; ++j, dz += channels) {
        const clipped window(l, i, j);
        each_register<T>(channels, [&](std::int64_t channel, auto n) {
          using V = decltype(load_channels(dz, n));
          const V d = load_channels(dz + channel, n);
          V index(0);  // the number, in order, of the largest element
          T number = 0;
          each_better<V>(l, x + channel, window, n, [&](std::int64_t, const auto& better) {
            index = num::select(better, V(number), index);
            number += 1;
          });
          number = 0;
          each_of(l, window, [&](std::int64_t offset) {
            T* const to = dx + offset + channel;
            store_channels(to, load_channels(to, n) + num::select(index == V(number), d, V(0)), n);
            number += 1;
          });
        });
      }
  }
};

template <class T>
class kernel_of<spec::pool_pick, T> final : public spec::pool_pick {
  void ready() override {
    pool_pick::ready();
    cost_ = 2 * pooling_nanoseconds<T>(windows_);
  }
  void run(const kernel_call& c) override {
    if (out().elements() == 0) return;
    const image_windows& l = windows_;
    const T* const from = static_cast<const T*>(c.in[0]);
    const T* const largest = static_cast<const T*>(c.in[1]);
    T* const to = static_cast<T*>(c.out[0]);
    const std::int64_t rows = l.height.count, columns = l.width.count, channels = l.channels;
    in_pieces(l.batch * rows, this->cost_, [&](std::int64_t row) {
      const T* const u = from + row / rows * l.image();
      const T* const x = largest + row / rows * l.image();
      T* y = to + row * columns * channels;
      for (std::int64_t j = 0; j < columns; ++j, y += channels) {
        const clipped window(l, row % rows, j);
        const std::int64_t first = first_of(l, window);
        each_register<T>(channels, [&](std::int64_t channel, auto n) {
          auto v = load_channels(u + first + channel, n);
          using V = decltype(v);
          each_better<V>(l, x + channel, window, n, [&](std::int64_t offset, const auto& better) {
            v = num::select(better, load_channels(u + offset + channel, n), v);
          });
          store_channels(y + channel, v, n);
        });
      }
    });
  }
};

}  // namespace
}  // namespace deft::ext::cpu
