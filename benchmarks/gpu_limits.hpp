// SPDX-License-Identifier: Apache-2.0
// benchmarks/gpu_limits.hpp: the time of work that is queued on a GPU by hand.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench.hpp"

namespace bench {

/// Each function returns turns, in seconds per time, of work on separate memory, which is freed
/// with them.
class gpu_limits {
 public:
  virtual ~gpu_limits() = default;
  /// Versions, for the record.
  virtual std::string about() const = 0;
  /// Copies so many bytes within the GPU's memory.
  virtual measure copy(std::size_t bytes) = 0;
  /// Copies from pinned memory of the host to the GPU, and back.
  virtual measure copy_in(std::size_t bytes) = 0;
  virtual measure copy_out(std::size_t bytes) = 0;
  /// A product of two square matrices of floats by the vendor's library; empty without it.
  virtual measure product(int extent, bool tf32) = 0;
  /// A captured graph of kernels, each of which multiplies 16 floats by others, or adds a constant
  /// to them; from its launch until it is done.
  virtual measure graph(int kernels) = 0;
};

/// The limits of CUDA's first GPU (gpu_limits.cu). Throws std::runtime_error if a call fails.
std::unique_ptr<gpu_limits> cuda_limits();

/// The limits of the host, for a simulated GPU: they test the program, and are not goals.
class host_limits final : public gpu_limits {
 public:
  std::string about() const override { return "simulated; the figures mean nothing"; }
  measure copy(std::size_t bytes) override {
    return timed([from = std::vector<char>(bytes), to = std::vector<char>(bytes)]() mutable {
      std::memcpy(to.data(), from.data(), from.size());
      keep(to);
    });
  }
  measure copy_in(std::size_t bytes) override { return copy(bytes); }
  measure copy_out(std::size_t bytes) override { return copy(bytes); }
  measure product(int extent, bool) override {
    const auto n = static_cast<std::size_t>(extent);
    return timed([n, a = std::vector<float>(n * n, 1), b = std::vector<float>(n * n, 2),
                  c = std::vector<float>(n * n)]() mutable {
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < n; ++k)
          for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
      keep(c);
    });
  }
  measure graph(int kernels) override {
    return timed([kernels, v = std::vector<float>(16, .5f)]() mutable {
      for (int i = 0; i < kernels; ++i) {
        for (auto& e : v) e = i % 2 ? e + 1e-3f : e * .999f;
        keep(v);
      }
    });
  }
};

}  // namespace bench
