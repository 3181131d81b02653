// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/cudnn.ipp: convolutions by cuDNN, which is loaded with the first one.
#pragma once
#include <deft/kernels/gpu/cuda/cudnn.hpp>
#include <deft/kernels/gpu/cuda/library.ipp>
#include <deft/kernels/gpu/cuda/stream.hpp>
#include <deft/kernels/spec/conv2d.hpp>
#include <map>

namespace deft::ext::gpu::cuda {
namespace {

/// Those of one GPU. Thread-safe. Of algorithms it takes those that give the same bits every time.
/// Filters are copied: the library has those of each output together.
class cudnn_convolutions final : public convolution_library, gpu_library<cudnn::functions> {
 public:
  cudnn_convolutions(std::shared_ptr<queues> q, std::shared_ptr<device_memory> m, bool allow_tf32)
      : gpu_library(std::move(q), std::move(m)), allow_tf32_(allow_tf32) {}

  bool convolve(cudaStream_t on, dtype type, const image_convolution& c, const void* a,
                const void* b, void* to) override {
    if (type != dtype::float32 && type != dtype::float64) return false;
    for (const void* p : {a, b, static_cast<const void*>(to)})
      if (reinterpret_cast<std::uintptr_t>(p) % 16) return false;
    if (!is_known(c.height) || !is_known(c.width) || !is_short(c)) return false;
    // Held until all of it is queued: convolutions share the workspace.
    std::lock_guard lock(guard_);
    if (!open(on)) return false;
    const key what{type, c};
    auto at = plans_.find(what);
    if (at == plans_.end()) {
      if (plans_.size() == most_plans) plans_.clear();
      at = plans_.emplace(what, make_plan(what)).first;
    }
    plan& by = at->second;
    if (by.refused) return false;
    const int said = queue(on, what, by, a, b, to);
    if (said != cudnn::success) refuse(by, what, library_.status_string(said));
    return !by.refused;
  }

 private:
  struct key {
    dtype type;
    image_convolution what;
    auto operator<=>(const key&) const = default;
  };
  struct plan {
    descriptor x, y, filter, given_filter, copied_filter, convolution;
    std::size_t copied = 0;  ///< bytes that the filter's copy takes at the front of the workspace
    int algorithm = 0;
    bool refused = false;
  };
  static constexpr std::size_t most_plans = 4096;
  static constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

  /// Whether the library's windows are where ours are. It pads both ends alike; what it then has at
  /// the end that no window reaches does no harm.
  static bool is_known(const window_axis& w) {
    const std::int64_t rest = w.extent + 2 * w.before - w.window;
    return rest >= 0 && rest / w.stride + 1 == w.count;
  }
  /// Whether its ints can count all elements.
  static bool is_short(const image_convolution& c) {
    constexpr std::int64_t most = INT32_MAX;
    auto fits = [](std::initializer_list<std::int64_t> extents) {
      std::int64_t n = 1;
      for (std::int64_t e : extents) {
        if (e <= 0 || e > most / n) return false;
        n *= e;
      }
      return true;
    };
    return fits({c.batch, c.height.extent, c.width.extent, c.channels}) &&
           fits({c.batch, c.height.count, c.width.count, c.outputs}) &&
           fits({c.height.window, c.width.window, c.channels, c.outputs}) &&
           c.height.stride <= most && c.width.stride <= most;
  }

  /// Whether the library is there, and memory for it: what is short is left to tensors.
  bool open(cudaStream_t on) {
    if (no_room_) return false;
    auto not_used = [&](const std::string& why) {
      logging::info("GPU ", gpu(), ": ", why, "; convolutions are products of matrices");
    };
    try {
      return gpu_library::open(
          on, "cuDNN",
          [] {
            static constexpr std::string_view endings[] = {".so.9"};
            return toolkit_library("libcudnn", std::getenv("DEFT_CUDNN"), endings);
          },
          [] { return workspace_bytes; }, not_used);
    } catch (const error& e) {
      if (e.code() != errc::resource_exhausted) throw;
      no_room_ = true;
      not_used(str("there is no memory for cuDNN: ", e.message()));
      return false;
    }
  }

  plan make_plan(const key& k) {
    const image_convolution& c = k.what;
    const bool wide = k.type == dtype::float64;
    const int type = wide ? cudnn::real_64 : cudnn::real_32;
    int said = cudnn::success;
    auto made = [&](auto create, auto destroy) {
      void* d = nullptr;
      if (said == cudnn::success) said = create(&d);
      return descriptor(d, destroy);
    };
    auto tensor = [&] { return made(library_.create_tensor, library_.destroy_tensor); };
    auto set = [&](auto function, const descriptor& d, auto... to) {
      if (said == cudnn::success) said = function(d.get(), static_cast<int>(to)...);
    };
    plan p{tensor(), tensor(), made(library_.create_filter, library_.destroy_filter),
           tensor(), tensor(), made(library_.create_convolution, library_.destroy_convolution)};
    const window_axis &h = c.height, &w = c.width;
    set(library_.set_tensor, p.x, cudnn::channels_last, type, c.batch, c.channels, h.extent,
        w.extent);
    set(library_.set_tensor, p.y, cudnn::channels_last, type, c.batch, c.outputs, h.count, w.count);
    set(library_.set_filter, p.filter, type, cudnn::channels_last, c.outputs, c.channels, h.window,
        w.window);
    const std::int64_t tap = c.channels * c.outputs;  // elements of a filter's tap
    set(library_.set_strided_tensor, p.given_filter, type, c.outputs, c.channels, h.window,
        w.window, 1, c.outputs, w.window * tap, tap);
    set(library_.set_tensor, p.copied_filter, cudnn::channels_last, type, c.outputs, c.channels,
        h.window, w.window);
    set(library_.set_convolution, p.convolution, h.before, w.before, h.stride, w.stride, 1, 1,
        cudnn::correlation, type);
    set(library_.set_math, p.convolution, exact(k.type) ? cudnn::fma_math : cudnn::default_math);
    const auto bytes = static_cast<std::size_t>(c.filter_elements()) * size_of_dtype(k.type);
    p.copied = (bytes + 255) / 256 * 256;
    if (said == cudnn::success) said = choose(p, k);
    if (said != cudnn::success) refuse(p, k, library_.status_string(said));
    return p;
  }
  /// Without TF32.
  bool exact(dtype t) const { return t == dtype::float32 && !allow_tf32_; }
  /// Takes the first algorithm that will do: they come with the fastest first.
  int choose(plan& p, const key& k) {
    cudnn::recommendation all[8] = {};
    int found = 0;
    const auto kind = k.what.result;
    const operands d = operands_of(p, kind);
    if (const int said = library_.find[kind](handle_, d.a, d.b, p.convolution.get(), d.to,
                                             std::size(all), &found, all);
        said != cudnn::success)
      return said;
    for (const auto& r : std::span(all, static_cast<std::size_t>(found))) {
      const bool takes_tf32 = r.math != cudnn::default_math && r.math != cudnn::fma_math;
      if (r.state != cudnn::success || r.determined != cudnn::same_every_time ||
          p.copied + r.workspace > workspace_.capacity() || (exact(k.type) && takes_tf32))
        continue;
      p.algorithm = r.algorithm;
      return exact(k.type) ? int{cudnn::success} : library_.set_math(p.convolution.get(), r.math);
    }
    refuse(p, k, "it has no algorithm that gives the same bits every time in 64 MB");
    return cudnn::success;
  }

  /// Descriptors in the order in which the library wants them.
  struct operands {
    void *a, *b, *to;
  };
  static operands operands_of(const plan& p, image_convolution::kind kind) {
    void *const x = p.x.get(), *const y = p.y.get(), *const filter = p.filter.get();
    if (kind == image_convolution::forward) return {x, filter, y};
    if (kind == image_convolution::input_gradient) return {filter, y, x};
    return {x, y, filter};
  }

  int queue(cudaStream_t on, const key& what, const plan& p, const void* a, const void* b,
            void* to) {
    static constexpr float one_32 = 1, zero_32 = 0;
    static constexpr double one_64 = 1, zero_64 = 0;
    const bool wide = what.type == dtype::float64;
    const void* const one = wide ? static_cast<const void*>(&one_64) : &one_32;
    const void* const zero = wide ? static_cast<const void*>(&zero_64) : &zero_32;
    void* const copy = workspace_.data();
    const auto kind = what.what.result;
    const bool makes_filter = kind == image_convolution::filter_gradient;
    int said = library_.set_stream(handle_, on);
    if (said == cudnn::success && !makes_filter)
      said = library_.transform(handle_, one, p.given_filter.get(), b, zero, p.copied_filter.get(),
                                copy);
    if (said != cudnn::success) return said;
    // Ours come as x and filter, dy and filter, or dy and x.
    const void* const first = kind == image_convolution::forward ? a : makes_filter ? b : copy;
    const void* const second = kind == image_convolution::forward ? copy : a;
    const operands d = operands_of(p, kind);
    said =
        library_.run[kind](handle_, one, d.a, first, d.b, second, p.convolution.get(), p.algorithm,
                           static_cast<char*>(copy) + p.copied, workspace_.capacity() - p.copied,
                           zero, d.to, makes_filter ? copy : to);
    if (said == cudnn::success && makes_filter)
      said = library_.transform(handle_, one, p.copied_filter.get(), copy, zero,
                                p.given_filter.get(), to);
    return said;
  }

  /// The library does not do it. Said once.
  void refuse(plan& p, const key& k, const char* why) {
    p.refused = true;
    if (std::exchange(refused_, true)) return;
    static constexpr const char* names[] = {"a convolution",
                                            "a convolution's gradient by its input",
                                            "a convolution's gradient by its filter"};
    const image_convolution& c = k.what;
    logging::info("GPU ", gpu(), ": cuDNN refuses ", names[c.result], " of ", k.type, ", images (",
                  c.batch, ",", c.height.extent, ",", c.width.extent, ",", c.channels,
                  "), filter (", c.height.window, ",", c.width.window, ",", c.channels, ",",
                  c.outputs, "): ", why, "; what it refuses are products of matrices");
  }

  const bool allow_tf32_;
  std::mutex guard_;
  bool no_room_ = false, refused_ = false;
  std::map<key, plan> plans_;
};

}  // namespace
}  // namespace deft::ext::gpu::cuda
