// SPDX-License-Identifier: Apache-2.0
#include "fake_cudnn.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>

using namespace deft::ext::gpu::cuda;

namespace {

constexpr int bad_param = 2000;

fake::cudnn_state& state() {
  static auto& s = *new fake::cudnn_state;
  return s;
}
std::mutex guard;
/// Answers that something is wrong with a call.
int fault(const std::string& what) {
  std::lock_guard lock(guard);
  state().faults.push_back(what);
  return bad_param;
}

/// Of tensors and filters: images (or outputs), channels, height and width.
struct layout {
  bool is_filter = false;
  int type = -1;
  std::array<std::int64_t, 4> extent{}, stride{};

  std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return n * stride[0] + c * stride[1] + h * stride[2] + w * stride[3];
  }
  std::size_t bytes() const {
    std::size_t all = type == cudnn::real_64 ? 8 : 4;
    for (std::int64_t e : extent) all *= static_cast<std::size_t>(e);
    return all;
  }
};
struct convolution {
  int type = -1, math = -1;
  std::int64_t pad[2] = {}, stride[2] = {};
};
struct handle_state {
  cudaStream_t on = nullptr;
  bool has_stream = false;
};

template <class T>
int make(void** to) {
  *to = new T;
  ++state().descriptors;
  return cudnn::success;
}
template <class T>
int destroy(void* what) {
  delete static_cast<T*>(what);
  --state().descriptors;
  return cudnn::success;
}
int set(void* to, int type, std::array<std::int64_t, 4> extent,
        std::array<std::int64_t, 4> stride) {
  auto& l = *static_cast<layout*>(to);
  if (type != cudnn::real_32 && type != cudnn::real_64) return fault("a type");
  for (std::int64_t e : extent)
    if (e <= 0) return fault("an extent is not one");
  l.type = type, l.extent = extent, l.stride = stride;
  return cudnn::success;
}
int set_channels_last(void* to, int format, int type, std::int64_t n, std::int64_t c,
                      std::int64_t h, std::int64_t w) {
  if (format != cudnn::channels_last) return fault("a format");
  return set(to, type, {n, c, h, w}, {h * w * c, 1, w * c, c});
}

/// The two operands and the result of a convolution or gradient, as x, filter and y.
struct roles {
  const layout *x, *filter, *y;
};
roles roles_of(int kind, const void* a, const void* b, const void* to) {
  const auto *p = static_cast<const layout*>(a), *q = static_cast<const layout*>(b),
             *r = static_cast<const layout*>(to);
  if (kind == 0) return {p, q, r};
  if (kind == 1) return {r, p, q};
  return {p, r, q};
}
/// Whether they describe one.
bool fits(const roles& r, const convolution& c) {
  if (r.x->is_filter || r.y->is_filter || !r.filter->is_filter)
    return fault("a tensor for a filter, or a filter for a tensor"), false;
  if (r.x->type != c.type || r.filter->type != c.type || r.y->type != c.type)
    return fault("types differ"), false;
  if (r.x->extent[0] != r.y->extent[0] || r.x->extent[1] != r.filter->extent[1] ||
      r.y->extent[1] != r.filter->extent[0])
    return fault("images or channels differ"), false;
  for (std::size_t i : {0, 1}) {
    const std::int64_t rest = r.x->extent[2 + i] + 2 * c.pad[i] - r.filter->extent[2 + i];
    if (rest < 0 || rest / c.stride[i] + 1 != r.y->extent[2 + i])
      return fault("the result has another extent"), false;
  }
  return true;
}

/// Adds every product to its place in the result, which is one of the three.
template <class T>
void convolve(int kind, const roles& r, const convolution& c, const T* a, const T* b, T* to,
              std::size_t elements) {
  std::vector<double> sums(elements);
  const auto &x = *r.x, &f = *r.filter, &y = *r.y;
  for (std::int64_t n = 0; n < y.extent[0]; ++n)
    for (std::int64_t k = 0; k < y.extent[1]; ++k)
      for (std::int64_t i = 0; i < y.extent[2]; ++i)
        for (std::int64_t j = 0; j < y.extent[3]; ++j)
          for (std::int64_t m = 0; m < f.extent[1]; ++m)
            for (std::int64_t s = 0; s < f.extent[2]; ++s)
              for (std::int64_t t = 0; t < f.extent[3]; ++t) {
                const std::int64_t h = i * c.stride[0] - c.pad[0] + s,
                                   w = j * c.stride[1] - c.pad[1] + t;
                if (h < 0 || h >= x.extent[2] || w < 0 || w >= x.extent[3]) continue;
                const std::int64_t at_x = x.at(n, m, h, w), at_f = f.at(k, m, s, t),
                                   at_y = y.at(n, k, i, j);
                const std::int64_t place = kind == 0 ? at_y : kind == 1 ? at_x : at_f;
                const std::int64_t first = kind == 1 ? at_f : at_x,
                                   second = kind == 0 ? at_f : at_y;
                sums[static_cast<std::size_t>(place)] += double{a[first]} * double{b[second]};
              }
  for (std::size_t e = 0; e < elements; ++e) to[e] = static_cast<T>(sums[e]);
}

bool is_plain(int type, const void* one, const void* zero) {
  return type == cudnn::real_64
             ? *static_cast<const double*>(one) == 1 && *static_cast<const double*>(zero) == 0
             : *static_cast<const float*>(one) == 1 && *static_cast<const float*>(zero) == 0;
}

int find(int kind, void* a, void* b, void* conv, void* to, int most, int* found,
         cudnn::recommendation* all) {
  ++state().asked;
  if (state().no_algorithm) return state().no_algorithm;
  if (!fits(roles_of(kind, a, b, to), *static_cast<convolution*>(conv))) return bad_param;
  *found = 0;
  for (const auto& r : state().algorithms)
    if (*found < most) all[(*found)++] = r;
  return cudnn::success;
}

int run(int kind, void* handle, const void* alpha, void* layout_a, const void* a, void* layout_b,
        const void* b, void* conv, int algorithm, void* workspace, std::size_t bytes,
        const void* beta, void* layout_to, void* to) {
  if (state().no_convolution) return state().no_convolution;
  const auto& h = *static_cast<handle_state*>(handle);
  const auto c = *static_cast<convolution*>(conv);
  const roles r = roles_of(kind, layout_a, layout_b, layout_to);
  if (!h.has_stream) return fault("no stream was set");
  if (!fits(r, c)) return bad_param;
  if (!is_plain(c.type, alpha, beta)) return fault("it is not the convolution alone");
  const cudnn::recommendation* by = nullptr;
  for (const auto& one : state().algorithms)
    if (one.algorithm == algorithm) by = &one;
  if (!by) return fault("the algorithm is none of its own");
  if (bytes < by->workspace || reinterpret_cast<std::uintptr_t>(workspace) % 256)
    return fault("the workspace is too small, or not aligned");
  for (const void* p : {a, b, static_cast<const void*>(to)})
    if (reinterpret_cast<std::uintptr_t>(p) % 16) return fault("an array is not aligned");
  ++state().convolutions[kind];
  state().algorithm = algorithm;
  state().math = c.math;
  // Descriptors may be gone when the work runs.
  const layout x = *r.x, filter = *r.filter, y = *r.y;
  const std::size_t room = by->workspace;
  state().push(h.on, [=] {
    std::memset(workspace, 0xff, room);
    const roles now{&x, &filter, &y};
    const layout& result = kind == 0 ? y : kind == 1 ? x : filter;
    if (c.type == cudnn::real_64)
      convolve(kind, now, c, static_cast<const double*>(a), static_cast<const double*>(b),
               static_cast<double*>(to), result.bytes() / 8);
    else
      convolve(kind, now, c, static_cast<const float*>(a), static_cast<const float*>(b),
               static_cast<float*>(to), result.bytes() / 4);
  });
  return cudnn::success;
}

}  // namespace

extern "C" {

fake::cudnn_state* fake_cudnn() { return &state(); }

const char* cudnnGetErrorString(int) { return "it failed"; }
int cudnnCreate(void** handle) {
  if (state().no_handle) return state().no_handle;
  *handle = new handle_state;
  ++state().handles;
  return cudnn::success;
}
int cudnnDestroy(void* handle) {
  delete static_cast<handle_state*>(handle);
  --state().handles;
  return cudnn::success;
}
int cudnnSetStream(void* handle, void* stream) {
  *static_cast<handle_state*>(handle) = {static_cast<cudaStream_t>(stream), true};
  return cudnn::success;
}

int cudnnCreateTensorDescriptor(void** to) { return make<layout>(to); }
int cudnnDestroyTensorDescriptor(void* what) { return destroy<layout>(what); }
int cudnnSetTensor4dDescriptor(void* to, int format, int type, int n, int c, int h, int w) {
  return set_channels_last(to, format, type, n, c, h, w);
}
int cudnnSetTensor4dDescriptorEx(void* to, int type, int n, int c, int h, int w, int stride_n,
                                 int stride_c, int stride_h, int stride_w) {
  return set(to, type, {n, c, h, w}, {stride_n, stride_c, stride_h, stride_w});
}
int cudnnCreateFilterDescriptor(void** to) {
  const int said = make<layout>(to);
  static_cast<layout*>(*to)->is_filter = true;
  return said;
}
int cudnnDestroyFilterDescriptor(void* what) { return destroy<layout>(what); }
int cudnnSetFilter4dDescriptor(void* to, int type, int format, int k, int c, int h, int w) {
  return set_channels_last(to, format, type, k, c, h, w);
}
int cudnnCreateConvolutionDescriptor(void** to) { return make<convolution>(to); }
int cudnnDestroyConvolutionDescriptor(void* what) { return destroy<convolution>(what); }
int cudnnSetConvolution2dDescriptor(void* to, int pad_h, int pad_w, int stride_h, int stride_w,
                                    int dilation_h, int dilation_w, int mode, int type) {
  if (pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1 || dilation_h != 1 || dilation_w != 1)
    return fault("padding, stride or dilation");
  if (mode != cudnn::correlation) return fault("filters are turned around");
  *static_cast<convolution*>(to) = {type, -1, {pad_h, pad_w}, {stride_h, stride_w}};
  return cudnn::success;
}
int cudnnSetConvolutionMathType(void* to, int math) {
  static_cast<convolution*>(to)->math = math;
  return cudnn::success;
}

int cudnnTransformTensor(void* handle, const void* alpha, void* layout_from, const void* from,
                         const void* beta, void* layout_to, void* to) {
  const layout f = *static_cast<layout*>(layout_from), t = *static_cast<layout*>(layout_to);
  if (f.is_filter || t.is_filter || f.type != t.type || f.extent != t.extent)
    return fault("tensors of a transformation differ");
  if (!is_plain(f.type, alpha, beta)) return fault("it is not the transformation alone");
  const std::size_t size = f.type == cudnn::real_64 ? 8 : 4;
  state().push(static_cast<handle_state*>(handle)->on, [=] {
    for (std::int64_t n = 0; n < f.extent[0]; ++n)
      for (std::int64_t c = 0; c < f.extent[1]; ++c)
        for (std::int64_t h = 0; h < f.extent[2]; ++h)
          for (std::int64_t w = 0; w < f.extent[3]; ++w)
            std::memcpy(
                static_cast<char*>(to) + static_cast<std::size_t>(t.at(n, c, h, w)) * size,
                static_cast<const char*>(from) + static_cast<std::size_t>(f.at(n, c, h, w)) * size,
                size);
  });
  return cudnn::success;
}

int cudnnGetConvolutionForwardAlgorithm_v7(void*, void* a, void* b, void* c, void* to, int most,
                                           int* found, cudnn::recommendation* all) {
  return find(0, a, b, c, to, most, found, all);
}
int cudnnGetConvolutionBackwardDataAlgorithm_v7(void*, void* a, void* b, void* c, void* to,
                                                int most, int* found, cudnn::recommendation* all) {
  return find(1, a, b, c, to, most, found, all);
}
int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void*, void* a, void* b, void* c, void* to,
                                                  int most, int* found,
                                                  cudnn::recommendation* all) {
  return find(2, a, b, c, to, most, found, all);
}
int cudnnConvolutionForward(void* handle, const void* alpha, void* layout_a, const void* a,
                            void* layout_b, const void* b, void* c, int algorithm, void* workspace,
                            std::size_t bytes, const void* beta, void* layout_to, void* to) {
  return run(0, handle, alpha, layout_a, a, layout_b, b, c, algorithm, workspace, bytes, beta,
             layout_to, to);
}
int cudnnConvolutionBackwardData(void* handle, const void* alpha, void* layout_a, const void* a,
                                 void* layout_b, const void* b, void* c, int algorithm,
                                 void* workspace, std::size_t bytes, const void* beta,
                                 void* layout_to, void* to) {
  return run(1, handle, alpha, layout_a, a, layout_b, b, c, algorithm, workspace, bytes, beta,
             layout_to, to);
}
int cudnnConvolutionBackwardFilter(void* handle, const void* alpha, void* layout_a, const void* a,
                                   void* layout_b, const void* b, void* c, int algorithm,
                                   void* workspace, std::size_t bytes, const void* beta,
                                   void* layout_to, void* to) {
  return run(2, handle, alpha, layout_a, a, layout_b, b, c, algorithm, workspace, bytes, beta,
             layout_to, to);
}

}  // extern "C"
