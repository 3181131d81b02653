// SPDX-License-Identifier: Apache-2.0
// benchmarks/gpu_limits.cu: the limits of CUDA's first GPU.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <stdexcept>

#include "gpu_limits.hpp"

namespace bench {
namespace {

void check(cudaError_t e, const char* doing) {
  if (e != cudaSuccess)
    throw std::runtime_error(std::string("CUDA's runtime failed ") + doing + ": " +
                             cudaGetErrorString(e));
}

struct stream {
  stream() { check(cudaStreamCreateWithFlags(&on, cudaStreamNonBlocking), "to make a stream"); }
  ~stream() { cudaStreamDestroy(on); }
  stream(const stream&) = delete;
  void wait() const { check(cudaStreamSynchronize(on), "to wait"); }
  cudaStream_t on = nullptr;
};
using stream_ptr = std::shared_ptr<stream>;

/// Queues `f` so many times before the host waits once, as a program with no other work would.
template <class F>
measure queued(const stream_ptr& s, int times, F f) {
  return [each = timed([s, times, f = std::move(f)] {
            for (int i = 0; i < times; ++i) f();
            s->wait();
          }),
          times] { return each() / times; };
}

using memory = std::shared_ptr<void>;
/// Memory filled with different floats below 1: products of similar numbers take less power, and
/// therefore less time.
memory on_device(std::size_t bytes) {
  void* p = nullptr;
  check(cudaMalloc(&p, bytes), "to allocate");
  const memory m(p, &cudaFree);
  std::vector<float> some(std::size_t{1} << 20);
  std::uint32_t state = 1;
  for (auto& v : some) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  }
  const std::size_t piece = some.size() * sizeof(float);
  for (std::size_t at = 0; at < bytes; at += piece)
    check(cudaMemcpy(static_cast<char*>(p) + at, some.data(), std::min(piece, bytes - at),
                     cudaMemcpyHostToDevice),
          "to copy");
  return m;
}
memory pinned(std::size_t bytes) {
  void* p = nullptr;
  check(cudaMallocHost(&p, bytes), "to allocate pinned memory");
  std::memset(p, 1, bytes);
  return {p, &cudaFreeHost};
}

measure copies(const stream_ptr& s, int times, memory to, memory from, std::size_t bytes,
               cudaMemcpyKind kind) {
  return queued(s, times, [=] {
    check(cudaMemcpyAsync(to.get(), from.get(), bytes, kind, s->on), "to copy");
  });
}

/// The functions of cuBLAS that are used here. They return 0 on success.
class cublas {
 public:
  static std::shared_ptr<cublas> load() try {
    for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                             "/usr/local/cuda/lib64/libcublas.so"})
      if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
        return std::shared_ptr<cublas>(new cublas(library));
    return nullptr;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return nullptr;
  }
  ~cublas() {
    if (handle_) destroy_(handle_);
  }
  void begin(const stream& s, bool tf32) {
    constexpr int default_math = 0, tf32_math = 3;  // CUBLAS_TF32_TENSOR_OP_MATH
    check(set_stream_(handle_, s.on));
    check(set_math_mode_(handle_, tf32 ? tf32_math : default_math));
  }
  void multiply(int n, const void* a, const void* b, void* c) {
    const float one = 1, none = 0;
    check(sgemm_(handle_, 0, 0, n, n, n, &one, static_cast<const float*>(a), n,
                 static_cast<const float*>(b), n, &none, static_cast<float*>(c), n));
  }

 private:
  explicit cublas(void* library) {
    find(library, "cublasCreate_v2", create_);
    find(library, "cublasDestroy_v2", destroy_);
    find(library, "cublasSetStream_v2", set_stream_);
    find(library, "cublasSetMathMode", set_math_mode_);
    find(library, "cublasSgemm_v2", sgemm_);
    check(create_(&handle_));
  }
  template <class F>
  static void find(void* library, const char* name, F*& f) {
    f = reinterpret_cast<F*>(dlsym(library, name));
    if (!f) throw std::runtime_error(std::string("cuBLAS has no ") + name);
  }
  static void check(int status) {
    if (status != 0) throw std::runtime_error("cuBLAS failed: status " + std::to_string(status));
  }

  int (*create_)(void**) = nullptr;
  int (*destroy_)(void*) = nullptr;
  int (*set_stream_)(void*, cudaStream_t) = nullptr;
  int (*set_math_mode_)(void*, int) = nullptr;
  int (*sgemm_)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int,
                const float*, float*, int) = nullptr;
  void* handle_ = nullptr;
};

__global__ void multiply(float* v, const float* w) { v[threadIdx.x] *= w[threadIdx.x]; }
__global__ void add(float* v, float k) { v[threadIdx.x] += k; }

std::shared_ptr<CUgraphExec_st> captured(const stream& s, int kernels, float* v, const float* w) {
  check(cudaStreamBeginCapture(s.on, cudaStreamCaptureModeThreadLocal), "to begin a capture");
  for (int i = 0; i < kernels; ++i)
    if (i % 2)
      add<<<1, 16, 0, s.on>>>(v, 1e-3f);
    else
      multiply<<<1, 16, 0, s.on>>>(v, w);
  check(cudaGetLastError(), "to capture a kernel");
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(s.on, &graph), "to capture a graph");
  cudaGraphExec_t made = nullptr;
  const cudaError_t e = cudaGraphInstantiate(&made, graph, 0);
  cudaGraphDestroy(graph);
  check(e, "to instantiate a graph");
  return {made, &cudaGraphExecDestroy};
}

class limits final : public gpu_limits {
 public:
  std::string about() const override {
    int runtime = 0, driver = 0;
    check(cudaRuntimeGetVersion(&runtime), "to tell its version");
    check(cudaDriverGetVersion(&driver), "to tell the driver's version");
    auto text = [](int v) {
      return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
    };
    return "CUDA " + text(runtime) + ", driver for " + text(driver) +
           (blas_ ? "" : ", without cuBLAS");
  }
  measure copy(std::size_t bytes) override {
    return copies(stream_, 16, on_device(bytes), on_device(bytes), bytes, cudaMemcpyDeviceToDevice);
  }
  measure copy_in(std::size_t bytes) override {
    return copies(stream_, 4, on_device(bytes), pinned(bytes), bytes, cudaMemcpyHostToDevice);
  }
  measure copy_out(std::size_t bytes) override {
    return copies(stream_, 4, pinned(bytes), on_device(bytes), bytes, cudaMemcpyDeviceToHost);
  }
  measure product(int extent, bool tf32) override {
    if (!blas_) return {};
    blas_->begin(*stream_, tf32);
    const std::size_t bytes = sizeof(float) * extent * extent;
    return queued(stream_, 8,
                  [blas = blas_, extent, a = on_device(bytes), b = on_device(bytes),
                   c = on_device(bytes)] { blas->multiply(extent, a.get(), b.get(), c.get()); });
  }
  measure graph(int kernels) override {
    const memory v = on_device(64), w = on_device(64);
    const auto made = captured(*stream_, kernels, static_cast<float*>(v.get()),
                               static_cast<const float*>(w.get()));
    return timed([s = stream_, made, v, w] {
      check(cudaGraphLaunch(made.get(), s->on), "to launch a graph");
      s->wait();
    });
  }

 private:
  const stream_ptr stream_ = std::make_shared<stream>();
  const std::shared_ptr<cublas> blas_ = cublas::load();
};

}  // namespace

std::unique_ptr<gpu_limits> cuda_limits() { return std::make_unique<limits>(); }

}  // namespace bench
