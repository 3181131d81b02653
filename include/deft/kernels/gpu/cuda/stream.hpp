// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/stream.hpp: what kernels queue their work on, on CUDA's GPUs. Any compiler
// may see this; cuda/launch.hpp has what only nvcc understands.
#pragma once
#include <deft/core/dtype.hpp>
#include <deft/kernels/gpu/fault.hpp>
#include <deft/kernels/gpu/row_fold.hpp>
#include <span>

struct CUstream_st;  // a cudaStream_t points to one

namespace deft::ext {
struct image_convolution;
struct matrix_product;
}  // namespace deft::ext
namespace deft::ext::gpu::cuda {

/// A library that multiplies matrices.
class product_library {
 public:
  /// See stream::multiply.
  virtual bool multiply(CUstream_st* on, dtype type, const matrix_product& p, const void* a,
                        const void* b, void* c) = 0;

 protected:
  ~product_library() = default;
};
/// A library that convolves images.
class convolution_library {
 public:
  /// See stream::convolve.
  virtual bool convolve(CUstream_st* on, dtype type, const image_convolution& c, const void* a,
                        const void* b, void* to) = 0;

 protected:
  ~convolution_library() = default;
};
/// Those of a device; null where none is to be asked.
struct libraries {
  product_library* products = nullptr;
  convolution_library* convolutions = nullptr;
};

/// See gpu/stream.hpp.
class stream {
 public:
  /// `failed`: for an update, the word on the device that is set once its run has failed; for other
  /// work null.
  stream(CUstream_st* on, const fault_report& faults, const std::uint32_t* failed,
         const libraries& by = {})
      : on_(on), faults_(faults), failed_(failed), by_(by) {}

  template <class T>
  const T* in(const void* p) const {
    return static_cast<const T*>(p);
  }
  template <class T>
  T* out(void* p) const {
    return static_cast<T*>(p);
  }
  const fault_report& faults() const { return faults_; }

  template <class F>
  void launch(std::int64_t n, const F& f);

  template <row_fold F>
  void over_rows(const F& f, std::int64_t rows, std::int64_t n, void* room) {
    if (fold_parts(rows, n) > 1) return over_parts(*this, f, rows, n, room);
    fold_rows(f, rows, n);
  }
  /// Without parts.
  template <row_fold F>
  void fold_rows(const F& f, std::int64_t rows, std::int64_t n);

  /// Bytes, for a radix sort by eight bits at a time.
  static std::size_t sort_room(std::int64_t n) {
    return (std::size_t{1} << 17) + 9 * static_cast<std::size_t>(n);
  }
  void sort_by_key(const std::uint32_t* keys, std::uint32_t* sorted_keys,
                   const std::uint32_t* values, std::uint32_t* sorted_values, std::int64_t n,
                   int bits, void* room);

  bool multiply(dtype type, const matrix_product& p, const void* a, const void* b, void* c) {
    // No library looks at the word by which an update is left out.
    return by_.products && !failed_ && by_.products->multiply(on_, type, p, a, b, c);
  }
  bool convolve(dtype type, const image_convolution& c, const void* a, const void* b, void* to) {
    return by_.convolutions && !failed_ && by_.convolutions->convolve(on_, type, c, a, b, to);
  }

  /// For libraries that queue kernels of their own.
  CUstream_st* native() const { return on_; }
  /// Of an update; see the constructor.
  const std::uint32_t* failed() const { return failed_; }

  /// Throws what the runtime says, a cudaError_t, of what was done: "to start a kernel".
  static void check(int said, const char* doing);

 private:
  /// Queues a kernel. Throws what the runtime says of it; failed_precondition if there is no code
  /// for the GPU, where `compiled_for` are the architectures that there is some for: 800 is 8.0.
  void start(const void* kernel, std::int64_t blocks, unsigned threads, void** arguments,
             std::span<const int> compiled_for);

  CUstream_st* on_;
  fault_report faults_;
  const std::uint32_t* failed_;
  libraries by_;
};

}  // namespace deft::ext::gpu::cuda
