// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/pool.ipp: max_pool, avg_pool and their gradients. A thread has an element of the
// result: a window, or in gradients an element of an image, whose windows it goes through in order.
#pragma once
#include <deft/core/num_lane.hpp>
#include <deft/kernels/gpu/divider.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/spec/long_sum.hpp>
#include <deft/kernels/spec/pool.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

/// Windows over images, and the extents of what threads are numbered by.
struct pooled_images {
  window_axis height, width;
  divider rows, columns, channels;

  pooled_images(const image_windows& w, const dims& numbered)
      : height(w.height),
        width(w.width),
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
    return height.elements(i).size() * width.elements(j).size();
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

template <class T, bool OfLargest>
struct pooled {
  pooled_images of;
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
    if constexpr (OfLargest) {
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

template <class T, bool OfLargest>
struct pooling_gradient {
  pooled_images of;
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
        if constexpr (OfLargest) {
          if (of.largest(x, b, i, j, c) == number) sum = sum + d;
        } else {
          row = row + d / num::lane<T>(static_cast<T>(of.count(i, j)));
        }
      }
      if constexpr (!OfLargest) sum = sum + row;
    }
    dx[number] = sum.v;
  }
};

/// Of each window of `u`, the element where that of x has its largest.
template <class T>
struct picked {
  pooled_images of;
  const T *u, *x;
  T* y;

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t b = number;
    const std::int64_t c = of.channels.cut(b), j = of.columns.cut(b), i = of.rows.cut(b);
    y[number] = u[of.largest(x, b, i, j, c)];
  }
};

template <class Op, class T>
class kernel_of<spec::pool<Op>, T> final : public queued<spec::pool<Op>> {
  void queue(const kernel_call& c, stream& s) override {
    const dims& y = this->out();
    if (y.elements() == 0) return;
    s.launch(y.elements(), pooled<T, spec::pool<Op>::of_largest>{
                               {this->windows_, y}, s.in<T>(c.in[0]), s.out<T>(c.out[0])});
  }
};
template <class Op, class T>
class kernel_of<spec::pool_gradient<Op>, T> final : public queued<spec::pool_gradient<Op>> {
  void queue(const kernel_call& c, stream& s) override {
    const dims& x = this->out();
    if (x.elements() == 0) return;
    s.launch(x.elements(),
             pooling_gradient<T, spec::pool_gradient<Op>::of_largest>{
                 {this->windows_, x}, s.in<T>(c.in[0]), s.in<T>(c.in[1]), s.out<T>(c.out[0])});
  }
};
template <class T>
class kernel_of<spec::pool_pick, T> final : public queued<spec::pool_pick> {
  void queue(const kernel_call& c, stream& s) override {
    if (out().elements() == 0) return;
    s.launch(out().elements(),
             picked<T>{{windows_, out()}, s.in<T>(c.in[0]), s.in<T>(c.in[1]), s.out<T>(c.out[0])});
  }
};

}  // namespace
}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
