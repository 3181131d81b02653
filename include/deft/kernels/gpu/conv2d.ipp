// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/conv2d.ipp: convolution and its gradients: by the system's library where it has
// one, else as products of matrices: the windows of some images are copied into rows of a matrix,
// or added up from one.
#pragma once
#include <deft/kernels/gpu/divider.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/spec/conv2d.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

/// Bytes of that matrix, except if it is of a single image.
constexpr std::int64_t most_bytes = std::int64_t{1} << 26;

struct convolved_images {
  window_axis height, width;
  divider rows, columns, taps_across, channels;  ///< of windows; of a window

  convolved_images() = default;
  explicit convolved_images(const image_convolution& c)
      : height(c.height),
        width(c.width),
        rows(std::max<std::int64_t>(1, height.count)),
        columns(std::max<std::int64_t>(1, width.count)),
        taps_across(width.window),
        channels(std::max<std::int64_t>(1, c.channels)) {}

  DEFT_HD std::int64_t depth() const { return height.window * width.window * channels.by(); }
};

/// An element of a window.
template <class T>
struct copied_windows {
  convolved_images w;
  divider depth;
  const T* x;
  T* to;

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t window = number, tap = depth.cut(window);
    const std::int64_t c = w.channels.cut(tap), s = w.taps_across.cut(tap);
    const std::int64_t j = w.columns.cut(window), i = w.rows.cut(window);
    const std::int64_t h = w.height.first(i) + tap, v = w.width.first(j) + s;
    const bool inside = h >= 0 && h < w.height.extent && v >= 0 && v < w.width.extent;
    to[number] =
        inside ? x[((window * w.height.extent + h) * w.width.extent + v) * w.channels.by() + c]
               : T(0);
  }
};
/// An element of an image: the sum of what the windows have for it, in their order.
template <class T>
struct added_windows {
  convolved_images w;
  divider image_columns, image_rows;
  const T* from;
  T* to;

  DEFT_HD void operator()(std::int64_t number) const {
    std::int64_t b = number;
    const std::int64_t c = w.channels.cut(b), v = image_columns.cut(b), h = image_rows.cut(b);
    const index_range down = w.height.windows(h), across = w.width.windows(v);
    T sum = 0;
    for (std::int64_t i = down.begin; i < down.end; ++i)
      for (std::int64_t j = across.begin; j < across.end; ++j) {
        const std::int64_t r = h - w.height.first(i), s = v - w.width.first(j);
        sum += from[((b * w.height.count + i) * w.width.count + j) * w.depth() +
                    (r * w.width.window + s) * w.channels.by() + c];
      }
    to[number] = sum;
  }
};
template <class T>
struct added {
  const T* from;
  T* to;
  DEFT_HD void operator()(std::int64_t i) const { to[i] += from[i]; }
};
template <class T>
struct zeros {
  T* to;
  DEFT_HD void operator()(std::int64_t i) const { to[i] = 0; }
};

/// Works on as many images at a time as the matrix of their windows has room for.
template <class Spec, class T>
class windows_kernel : public queued<Spec> {
 public:
  std::size_t scratch() const override { return room_; }

 protected:
  void ready() override {
    Spec::ready();
    const image_convolution& c = this->what_;
    w_ = convolved_images(c);
    all_ = c.batch;
    image_ = c.image();
    pixels_ = c.pixels();
    outputs_ = c.outputs;
    depth_ = c.depth();
    in_place_ = depth_ == c.channels && c.height.stride == 1 && c.width.stride == 1;
    const std::int64_t bytes = pixels_ * depth_ * static_cast<std::int64_t>(sizeof(T));
    some_ = std::clamp<std::int64_t>(most_bytes / std::max<std::int64_t>(1, bytes), 1,
                                     std::max<std::int64_t>(1, all_));
    room_ = in_place_ ? 0 : static_cast<std::size_t>(some_ * bytes);
  }
  /// Calls f(first, images) for all of them.
  template <class F>
  void each(F&& f) const {
    for (std::int64_t b = 0; b < all_; b += some_) f(b, std::min(some_, all_ - b));
  }
  matrix_product product(std::int64_t m, std::int64_t n, std::int64_t k) const {
    matrix_product p;
    p.m = m, p.n = n, p.k = k;
    return p;
  }
  /// Whether a library does all of it, with the operation's first two operands.
  bool by_library(const kernel_call& c, stream& s) const {
    return !in_place_ && s.convolve(this->type(), this->what_, c.in[0], c.in[1], c.out[0]);
  }
  /// The windows of some images as a matrix.
  const void* copy(stream& s, const T* x, std::int64_t images, void* room) const {
    if (in_place_) return x;
    const std::int64_t n = images * pixels_ * depth_;
    if (n) s.launch(n, copied_windows<T>{w_, divider(depth_), s.in<T>(x), s.out<T>(room)});
    return room;
  }

  convolved_images w_;
  std::int64_t all_ = 0, some_ = 1, image_ = 0, pixels_ = 0, outputs_ = 0, depth_ = 0;
  bool in_place_ = false;  ///< the windows are the images
  std::size_t room_ = 0;
};

template <class T>
class kernel_of<spec::conv2d, T> final : public windows_kernel<spec::conv2d, T> {
  void queue(const kernel_call& c, stream& s) override {
    const T* const x = static_cast<const T*>(c.in[0]);
    T* const y = static_cast<T*>(c.out[0]);
    if (this->out().elements() == 0) return;
    if (this->by_library(c, s)) return;
    this->each([&](std::int64_t b, std::int64_t images) {
      const void* const rows = this->copy(s, x + b * this->image_, images, c.scratch);
      queue_product(s, this->type(),
                    this->product(images * this->pixels_, this->outputs_, this->depth_), rows,
                    c.in[1], y + b * this->pixels_ * this->outputs_);
    });
  }
};

template <class T>
class kernel_of<spec::conv2d_input_gradient, T> final
    : public windows_kernel<spec::conv2d_input_gradient, T> {
  void queue(const kernel_call& c, stream& s) override {
    if (this->out().elements() == 0) return;
    if (this->by_library(c, s)) return;
    const T* const dz = static_cast<const T*>(c.in[0]);
    T* const dx = static_cast<T*>(c.out[0]);
    this->each([&](std::int64_t b, std::int64_t images) {
      T* const to = dx + b * this->image_;
      matrix_product p = this->product(images * this->pixels_, this->depth_, this->outputs_);
      p.transpose_b = true;
      void* const rows = this->in_place_ ? to : c.scratch;
      queue_product(s, this->type(), p, dz + b * this->pixels_ * this->outputs_, c.in[1], rows);
      if (this->in_place_) return;
      s.launch(images * this->image_,
               added_windows<T>{this->w_, divider(this->out()[2]), divider(this->out()[1]),
                                s.in<T>(rows), s.out<T>(to)});
    });
  }
};

template <class T>
class kernel_of<spec::conv2d_filter_gradient, T> final
    : public windows_kernel<spec::conv2d_filter_gradient, T> {
  using base = windows_kernel<spec::conv2d_filter_gradient, T>;

  void queue(const kernel_call& c, stream& s) override {
    const std::int64_t n = this->out().elements();
    if (n == 0) return;
    const T* const dz = static_cast<const T*>(c.in[0]);
    const T* const x = static_cast<const T*>(c.in[1]);
    T* const dw = static_cast<T*>(c.out[0]);
    if (this->all_ * this->pixels_ == 0) return s.launch(n, zeros<T>{s.out<T>(dw)});
    if (this->by_library(c, s)) return;
    T* const part = reinterpret_cast<T*>(static_cast<char*>(c.scratch) + part_);
    this->each([&](std::int64_t b, std::int64_t images) {
      const void* const rows = this->copy(s, x + b * this->image_, images, c.scratch);
      matrix_product p = this->product(this->depth_, this->outputs_, images * this->pixels_);
      p.transpose_a = true;
      queue_product(s, this->type(), p, rows, dz + b * this->pixels_ * this->outputs_,
                    b == 0 ? dw : part);
      if (b > 0) s.launch(n, added<T>{s.in<T>(part), s.out<T>(dw)});
    });
  }
  void ready() override {
    base::ready();
    part_ = (this->room_ + 255) / 256 * 256;
    if (this->some_ < this->all_)
      this->room_ = part_ + static_cast<std::size_t>(this->out().elements()) * sizeof(T);
  }
  std::size_t part_ = 0;  ///< where the product of all images but the first ones is kept
};

}  // namespace
}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
