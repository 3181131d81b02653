// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/pool.ipp: max_pool, avg_pool and their gradients. A thread has an element of the
// result: a window, or in gradients an element of an image, whose windows it goes through in order.
#pragma once
#include <deft/core/num_lane.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/gpu/windows.hpp>
#include <deft/kernels/spec/long_sum.hpp>
#include <deft/op/avg_pool.hpp>
#include <deft/op/max_pool.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace pooling {
namespace {

template <class Op>
inline constexpr bool of_largest =
    std::is_same_v<Op, op::max_pool> || std::is_same_v<Op, op::max_pool_gradient>;

/// Windows over images, and the extents of what threads are numbered by.
struct images {
  window_axis height, width;
  divider rows, columns, channels;

  images() = default;
  images(const op::pooling& o, const dims& x, const dims& y, const dims& numbered)
      : height(x[1], o.window[0], o.stride[0], o.same, y[1]),
        width(x[2], o.window[1], o.stride[1], o.same, y[2]),
        rows(std::max<std::int64_t>(1, numbered[1])),
        columns(std::max<std::int64_t>(1, numbered[2])),
        channels(std::max<std::int64_t>(1, numbered[3])) {}

  DEFT_HD std::int64_t element(std::int64_t b, std::int64_t h, std::int64_t w,
                               std::int64_t c) const {
    return ((b * height.extent + h) * width.extent + w) * channels.by() + c;
  }
  DEFT_HD std::int64_t window(std::int64_t b, std::int64_t i, std::int64_t j,
                              std::int64_t c) const {
    return ((b * height.count + i) * width.count + j) * channels.by() + c;
  }
  DEFT_HD std::int64_t count(std::int64_t i, std::int64_t j) const {
    const index_range down = height.elements(i), across = width.elements(j);
    return (down.end - down.begin) * (across.end - across.begin);
  }
  /// The first of the largest elements of a window, or the first NaN.
  template <class T>
  DEFT_HD std::int64_t largest(const T* x, std::int64_t b, std::int64_t i, std::int64_t j,
                               std::int64_t c) const {
    const index_range down = height.elements(i), across = width.elements(j);
    std::int64_t best = element(b, down.begin, across.begin, c);
    T most = x[best];
    for (std::int64_t h = down.begin; h < down.end; ++h)
#ifdef __CUDA_ARCH__
#pragma unroll 1  // else registers do not suffice, as the loops around it are unrolled, too
#endif
      for (std::int64_t w = across.begin; w < across.end; ++w) {
        const std::int64_t at = element(b, h, w, c);
        const T v = x[at];
        if (v > most || (v != v && most == most)) best = at, most = v;
      }
    return best;
  }
};

template <class T, class Op>
struct pooled {
  images of;
  const T* x;
  T* y;

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t b = number;
    const std::int64_t c = of.channels.cut(b), j = of.columns.cut(b), i = of.rows.cut(b);
    const index_range down = of.height.elements(i), across = of.width.elements(j);
    auto each = [&](auto f) {
      for (std::int64_t h = down.begin; h < down.end; ++h)
        for (std::int64_t w = across.begin; w < across.end; ++w)
          f(num::lane<T>(x[of.element(b, h, w, c)]));
    };
    if constexpr (of_largest<Op>) {
      num::lane<T> v = x[of.element(b, down.begin, across.begin, c)];
      each([&](num::lane<T> element) { v = num::maximum(v, element); });
      y[number] = v.v;
    } else {
      const num::lane<T> zero = T(0);
      long_sum<num::lane<T>> sum(zero);
      each([&](num::lane<T> element) { sum.add(element); });
      y[number] = (sum.total(zero) / num::lane<T>(static_cast<T>(of.count(i, j)))).v;
    }
  }
};

template <class T, class Op>
struct pooling_gradient {
  images of;
  const T *dz, *x;
  T* dx;

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t b = number;
    const std::int64_t c = of.channels.cut(b), w = of.columns.cut(b), h = of.rows.cut(b);
    const index_range down = of.height.windows(h), across = of.width.windows(w);
    num::lane<T> sum = 0;
    for (std::int64_t i = down.begin; i < down.end; ++i) {
      num::lane<T> row = 0;  // of an average: over the windows of a row first
      for (std::int64_t j = across.begin; j < across.end; ++j) {
        const num::lane<T> d = dz[of.window(b, i, j, c)];
        if constexpr (of_largest<Op>) {
          if (of.largest(x, b, i, j, c) == number) sum = sum + d;
        } else {
          row = row + d / num::lane<T>(static_cast<T>(of.count(i, j)));
        }
      }
      if constexpr (!of_largest<Op>) sum = sum + row;
    }
    dx[number] = sum.v;
  }
};

/// Of each window of `u`, the element where that of x has its largest.
template <class T>
struct picked {
  images of;
  const T *u, *x;
  T* y;

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t b = number;
    const std::int64_t c = of.channels.cut(b), j = of.columns.cut(b), i = of.rows.cut(b);
    y[number] = u[of.largest(x, b, i, j, c)];
  }
};

template <class T, class Op>
class forward final : public queued_kernel {
 public:
  explicit forward(const Op& o) : op_(o) {}
  void queue(const kernel_call& c, stream& s) override {
    if (out().elements() == 0) return;
    s.launch(out().elements(), pooled<T, Op>{of_, s.in<T>(c.in[0]), s.out<T>(c.out[0])});
  }

 private:
  void ready() override { of_ = images(op_, in(0), out(), out()); }
  Op op_;
  images of_;
};
template <class T, class Op>
class gradient final : public queued_kernel {
 public:
  explicit gradient(const Op& o) : op_(o) {}
  void queue(const kernel_call& c, stream& s) override {
    if (out().elements() == 0) return;
    s.launch(out().elements(),
             pooling_gradient<T, Op>{of_, s.in<T>(c.in[0]), s.in<T>(c.in[1]), s.out<T>(c.out[0])});
  }

 private:
  void ready() override { of_ = images(op_, in(1), in(0), out()); }
  Op op_;
  images of_;
};

template <class T, class Op>
class pick final : public queued_kernel {
 public:
  explicit pick(const Op& o) : op_(o) {}
  void queue(const kernel_call& c, stream& s) override {
    if (out().elements() == 0) return;
    s.launch(out().elements(),
             picked<T>{of_, s.in<T>(c.in[0]), s.in<T>(c.in[1]), s.out<T>(c.out[0])});
  }

 private:
  void ready() override { of_ = images(op_, in(1), out(), out()); }
  Op op_;
  images of_;
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

}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
