// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/pool.ipp: max_pool, avg_pool and their gradients: a register of channels at a
// time over the elements of each window.
#pragma once
#include <algorithm>
#include <deft/kernels/cpu/kernel_base.hpp>
#include <deft/kernels/cpu/pack.hpp>
#include <deft/kernels/cpu/row_reduction.hpp>
#include <deft/kernels/cpu/tables.hpp>
#include <deft/kernels/spec/long_sum.hpp>
#include <deft/kernels/team.hpp>
#include <deft/op/avg_pool.hpp>
#include <deft/op/max_pool.hpp>

namespace deft::ext::cpu {
namespace pooling {
namespace {

/// The elements of a window that are in the image.
struct clipped {
  std::int64_t begin[2], end[2];
  std::int64_t count() const { return (end[0] - begin[0]) * (end[1] - begin[1]); }
};

/// Windows over images (batch, height, width, channels).
struct layout {
  dims x, y, window, stride;
  std::int64_t before[2] = {};

  layout() = default;
  layout(const op::pooling& o, const dims& of_x, const dims& of_y)
      : x(of_x), y(of_y), window(o.window), stride(o.stride) {
    for (int a = 0; a < 2; ++a)
      if (o.same) before[a] = op::padding_before(x[1 + a], window[a], stride[a], y[1 + a]);
  }
  clipped at(std::int64_t i, std::int64_t j) const {
    clipped c;
    const std::int64_t of[] = {i, j};
    for (int a = 0; a < 2; ++a) {
      const std::int64_t first = of[a] * stride[a] - before[a];
      c.begin[a] = std::max<std::int64_t>(0, first);
      c.end[a] = std::min(x[1 + a], first + window[a]);
    }
    return c;
  }
  /// Calls f(offset) for each element of a window, in order: from the image's first.
  template <class F>
  DEFT_ALWAYS_INLINE void each(const clipped& c, F&& f) const {
    for (std::int64_t h = c.begin[0]; h < c.end[0]; ++h)
      for (std::int64_t w = c.begin[1]; w < c.end[1]; ++w) f((h * x[2] + w) * x[3]);
  }
  std::int64_t image() const { return x[1] * x[2] * x[3]; }
  /// As measured with windows of 2x2: 6 for a register of channels of each element.
  template <class T>
  double nanoseconds() const {
    constexpr std::int64_t lanes = register_bytes / sizeof(T);
    double registers = static_cast<double>(y[0] * y[1] * y[2] * ((y[3] + lanes - 1) / lanes));
    for (int a = 0; a < 2; ++a) registers *= static_cast<double>(std::min(window[a], x[1 + a]));
    return 100 + 6 * registers;
  }
};

/// Calls f(channel, n) for registers of channels, n of them: a constant but at the end.
template <class T, class F>
DEFT_ALWAYS_INLINE void each_register(std::int64_t channels, F&& f) {
  constexpr int L = register_bytes / sizeof(T);
  std::int64_t c = 0;
  for (; c + L <= channels; c += L) f(c, std::integral_constant<std::int64_t, L>());
  if (c < channels) f(c, channels - c);
}
template <class T, class N>
DEFT_ALWAYS_INLINE auto load_channels(const T* from, N n) {
  constexpr int L = register_bytes / sizeof(T);
  if constexpr (std::is_same_v<N, std::int64_t>)
    return load_some<L>(from, n, T(0));
  else
    return load<T, L>(from);
}
template <class T, class P, class N>
DEFT_ALWAYS_INLINE void store_channels(T* to, const P& p, N n) {
  if constexpr (std::is_same_v<N, std::int64_t>)
    store_some(to, p, n);
  else
    store(to, p);
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
DEFT_ALWAYS_INLINE void each_better(const layout& l, const T* x, const clipped& window, N n,
                                    F&& f) {
  V largest = load_channels(x + (window.begin[0] * l.x[2] + window.begin[1]) * l.x[3], n);
  l.each(window, [&](std::int64_t offset) {
    const V element = load_channels(x + offset, n);
    const auto better = element > largest || (element != element && largest == largest);
    largest = num::select(better, element, largest);
    f(offset, better);
  });
}

template <class Op>
inline constexpr bool of_largest =
    std::is_same_v<Op, op::max_pool> || std::is_same_v<Op, op::max_pool_gradient>;

template <class T, class Op>
class forward final : public typed_kernel {
 public:
  explicit forward(const Op& o) : op_(o) {}
  void ready() override {
    l_ = layout(op_, in(0), out());
    cost_ = l_.template nanoseconds<T>();
  }
  void run(const kernel_call& c) override {
    if (out().elements() == 0) return;
    const T* const from = static_cast<const T*>(c.in[0]);
    T* const to = static_cast<T*>(c.out[0]);
    const std::int64_t rows = l_.y[1], columns = l_.y[2], channels = l_.y[3];
    in_pieces(l_.y[0] * rows, cost_, [&](std::int64_t row) {
      const T* const x = from + row / rows * l_.image();
      T* y = to + row * columns * channels;
      for (std::int64_t j = 0; j < columns; ++j, y += channels) {
        const clipped window = l_.at(row % rows, j);
        const T count = static_cast<T>(window.count());
        each_register<T>(channels, [&](std::int64_t channel, auto n) {
          const T* const at = x + channel;
          using V = decltype(load_channels(at, n));
          V v(0);
          if constexpr (of_largest<Op>) {
            v = load_channels(at + (window.begin[0] * l_.x[2] + window.begin[1]) * channels, n);
            l_.each(window, [&](std::int64_t offset) {
              v = num::maximum(v, load_channels(at + offset, n));
            });
          } else if (window.count() <= addends_together) {
            l_.each(window, [&](std::int64_t offset) { v = v + load_channels(at + offset, n); });
          } else {
            long_sum<V> sum(v);
            l_.each(window, [&](std::int64_t offset) { sum.add(load_channels(at + offset, n)); });
            v = sum.total(v);
          }
          if constexpr (!of_largest<Op>) v = v / V(count);
          store_channels(y + channel, v, n);
        });
      }
    });
  }

 private:
  Op op_;
  layout l_;
};

template <class T, class Op>
class gradient final : public typed_kernel {
 public:
  explicit gradient(const Op& o) : op_(o) {}
  void ready() override {
    l_ = layout(op_, in(1), in(0));
    cost_ = 2 * l_.template nanoseconds<T>();
  }
  void run(const kernel_call& c) override {
    if (out().elements() == 0) return;
    const T* const dz = static_cast<const T*>(c.in[0]);
    const T* const x = static_cast<const T*>(c.in[1]);
    T* const dx = static_cast<T*>(c.out[0]);
    const std::int64_t image = l_.image(), result = l_.y[1] * l_.y[2] * l_.y[3];
    in_pieces(l_.x[0], cost_, [&](std::int64_t b) {
      std::fill_n(dx + b * image, image, T(0));
      if constexpr (of_largest<Op>)
        add_to_largest(x + b * image, dz + b * result, dx + b * image);
      else
        add_everywhere(dz + b * result, dx + b * image);
    });
  }

 private:
  /// The elements of a row get the sum over the windows of a row first, which all rows that these
  /// windows cover have in common.
  void add_everywhere(const T* dz, T* dx) const {
    const std::int64_t channels = l_.x[3], row = l_.x[2] * channels;
    T* const sums = static_cast<T*>(thread_scratch(static_cast<std::size_t>(row) * sizeof(T)));
    for (std::int64_t i = 0; i < l_.y[1]; ++i) {
      std::fill_n(sums, row, T(0));
      for (std::int64_t j = 0; j < l_.y[2]; ++j, dz += channels) {
        const clipped window = l_.at(i, j);
        const T count = static_cast<T>(window.count());
        each_register<T>(channels, [&](std::int64_t channel, auto n) {
          using V = decltype(load_channels(dz, n));
          const V part = load_channels(dz + channel, n) / V(count);
          for (std::int64_t w = window.begin[1]; w < window.end[1]; ++w) {
            T* const to = sums + w * channels + channel;
            store_channels(to, load_channels(to, n) + part, n);
          }
        });
      }
      const clipped rows = l_.at(i, 0);
      for (std::int64_t h = rows.begin[0]; h < rows.end[0]; ++h)
        fold<T, plus>::into(dx + h * row, sums, row);
    }
  }
  void add_to_largest(const T* x, const T* dz, T* dx) const {
    const std::int64_t channels = l_.x[3];
    for (std::int64_t i = 0; i < l_.y[1]; ++i)
      for (std::int64_t j = 0; j < l_.y[2]; ++j, dz += channels) {
        const clipped window = l_.at(i, j);
        each_register<T>(channels, [&](std::int64_t channel, auto n) {
          using V = decltype(load_channels(dz, n));
          const V d = load_channels(dz + channel, n);
          V place(0);  // the number, in order, of the largest element
          T number = 0;
          each_better<V>(l_, x + channel, window, n, [&](std::int64_t, const auto& better) {
            place = num::select(better, V(number), place);
            number += 1;
          });
          number = 0;
          l_.each(window, [&](std::int64_t offset) {
            T* const to = dx + offset + channel;
            store_channels(to, load_channels(to, n) + num::select(place == V(number), d, V(0)), n);
            number += 1;
          });
        });
      }
  }
  Op op_;
  layout l_;
};

template <class T, class Op>
class pick final : public typed_kernel {
 public:
  explicit pick(const Op& o) : op_(o) {}
  void ready() override {
    l_ = layout(op_, in(1), out());
    cost_ = 2 * l_.template nanoseconds<T>();
  }
  void run(const kernel_call& c) override {
    if (out().elements() == 0) return;
    const T* const from = static_cast<const T*>(c.in[0]);
    const T* const largest = static_cast<const T*>(c.in[1]);
    T* const to = static_cast<T*>(c.out[0]);
    const std::int64_t rows = l_.y[1], columns = l_.y[2], channels = l_.y[3];
    in_pieces(l_.y[0] * rows, cost_, [&](std::int64_t row) {
      const T* const u = from + row / rows * l_.image();
      const T* const x = largest + row / rows * l_.image();
      T* y = to + row * columns * channels;
      for (std::int64_t j = 0; j < columns; ++j, y += channels) {
        const clipped window = l_.at(row % rows, j);
        const std::int64_t first = (window.begin[0] * l_.x[2] + window.begin[1]) * channels;
        each_register<T>(channels, [&](std::int64_t channel, auto n) {
          auto v = load_channels(u + first + channel, n);
          using V = decltype(v);
          each_better<V>(l_, x + channel, window, n, [&](std::int64_t offset, const auto& better) {
            v = num::select(better, load_channels(u + offset + channel, n), v);
          });
          store_channels(y + channel, v, n);
        });
      }
    });
  }

 private:
  Op op_;
  layout l_;
};

template <template <class, class> class Kernel, class Op>
kernel_ptr make(const node_def& n, std::span<const tensor_type> in) {
  const auto o = decode<Op>(n.attributes);
  return kernel_for<floating_dtypes>(n, in[0].type,
                                     [&]<class T>() { return std::make_unique<Kernel<T, Op>>(o); });
}

}  // namespace
}  // namespace pooling

kernel_table pool_kernels() {
  namespace p = pooling;
  static constexpr kernel_entry table[] = {
      {op::max_pool::name, floating_dtypes, &p::make<p::forward, op::max_pool>},
      {op::max_pool_gradient::name, floating_dtypes, &p::make<p::gradient, op::max_pool_gradient>},
      {op::max_pool_pick::name, floating_dtypes, &p::make<p::pick, op::max_pool_pick>},
      {op::avg_pool::name, floating_dtypes, &p::make<p::forward, op::avg_pool>},
      {op::avg_pool_gradient::name, floating_dtypes, &p::make<p::gradient, op::avg_pool_gradient>},
  };
  return table;
}

}  // namespace deft::ext::cpu
