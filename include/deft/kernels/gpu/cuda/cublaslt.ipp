// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/cublaslt.ipp: products of matrices by cuBLASLt, which is loaded with the
// first one.
#pragma once
#include <bit>
#include <compare>
#include <deft/kernels/gpu/cuda/cublaslt.hpp>
#include <deft/kernels/gpu/cuda/library.ipp>
#include <deft/kernels/gpu/cuda/stream.hpp>
#include <deft/kernels/spec/matrix_product.hpp>
#include <limits>
#include <map>

namespace deft::ext::gpu::cuda {
namespace {

/// Those of one GPU. Thread-safe.
class cublaslt_products final : public product_library, gpu_library<cublaslt::functions> {
 public:
  cublaslt_products(std::shared_ptr<queues> q, std::shared_ptr<device_memory> m, bool allow_tf32)
      : gpu_library(std::move(q), std::move(m)), allow_tf32_(allow_tf32) {}

  bool multiply(cudaStream_t on, dtype type, const matrix_product& p, const void* a, const void* b,
                void* c) override {
    if (type != dtype::float32 && type != dtype::float64) return false;
    if (p.k == 0) return false;  // sums of nothing
    if (p.count > std::numeric_limits<std::int32_t>::max()) return false;
    // Held until all of it is queued: a product may be several kernels, which share the workspace.
    std::lock_guard lock(guard_);
    if (!open(on)) return false;
    // Operands of a batch are aligned as the first one is, and as they are apart.
    const auto size = static_cast<std::int64_t>(size_of_dtype(type));
    const bool one = p.count == 1;
    const std::int64_t a_apart = one ? 0 : p.a_apart, b_apart = one ? 0 : p.b_apart;
    const key what{type,
                   p.m,
                   p.n,
                   p.k,
                   p.transpose_a,
                   p.transpose_b,
                   p.count,
                   a_apart,
                   b_apart,
                   align(a, a_apart * size),
                   align(b, b_apart * size),
                   align(c, one ? 0 : p.m * p.n * size)};
    auto at = plans_.find(what);
    if (at == plans_.end()) {
      if (plans_.size() == most_plans) plans_.clear();
      at = plans_.emplace(what, make_plan(what)).first;
    }
    plan& by = at->second;
    if (by.refused) return false;
    static constexpr float one_32 = 1, zero_32 = 0;
    static constexpr double one_64 = 1, zero_64 = 0;
    const bool wide = type == dtype::float64;
    // Rows of ours are columns of its own: it computes the transpose of c, from those of b and a.
    const int said = library_.multiply(
        handle_, by.product.get(), wide ? static_cast<const void*>(&one_64) : &one_32, b,
        by.b.get(), a, by.a.get(), wide ? static_cast<const void*>(&zero_64) : &zero_32, c,
        by.c.get(), c, by.c.get(), &by.algorithm, workspace_.data(), workspace_.capacity(), on);
    if (said != cublaslt::success) refuse(by, what, said);
    return !by.refused;
  }

 private:
  struct key {
    dtype type;
    std::int64_t m, n, k;
    bool transpose_a, transpose_b;
    std::int64_t count, a_apart, b_apart;
    std::uint32_t align_a, align_b, align_c;  ///< bytes, up to 256
    auto operator<=>(const key&) const = default;
  };
  struct plan {
    descriptor product, a, b, c;
    cublaslt::algorithm algorithm{};
    bool refused = false;
  };
  static constexpr std::size_t most_plans = 4096;

  static std::uint32_t align(const void* p, std::int64_t bytes_apart) {
    const auto both =
        reinterpret_cast<std::uintptr_t>(p) | static_cast<std::uintptr_t>(bytes_apart);
    return 1u << std::min(8, std::countr_zero(both));
  }

  /// Whether the library is there.
  bool open(cudaStream_t on) {
    return gpu_library::open(
        on, "cuBLASLt", [] { return toolkit_library("libcublasLt", std::getenv("DEFT_CUBLASLT")); },
        [&] {
          // With the 32 MB that NVIDIA recommends for Hopper, an H200 takes 6% longer to multiply
          // 4096 x 4096 floats.
          int major = 0;
          check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu()),
                "to be asked");
          return std::size_t{major >= 9 ? 64u : 4u} << 20;
        },
        [&](const std::string& why) {
          logging::warning("GPU ", gpu(), ": ", why,
                           "; products of matrices take deft's own kernel, which is slow");
        });
  }

  plan make_plan(const key& what) {
    const bool wide = what.type == dtype::float64;
    const int type = wide ? cublaslt::real_64 : cublaslt::real_32;
    int said = cublaslt::success;
    auto made = [&](auto create, auto destroy, auto... arguments) {
      void* d = nullptr;
      if (said == cublaslt::success) said = create(&d, arguments...);
      return descriptor(d, destroy);
    };
    auto set = [&](const descriptor& d, auto function, int attribute, auto value) {
      if (said == cublaslt::success) said = function(d.get(), attribute, &value, sizeof value);
    };
    auto layout = [&](std::int64_t rows, std::int64_t columns, std::int64_t apart) {
      auto l = made(library_.create_layout, library_.destroy_layout, type,
                    static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows), columns);
      if (what.count > 1) {
        set(l, library_.set_layout, cublaslt::batch_count, static_cast<std::int32_t>(what.count));
        set(l, library_.set_layout, cublaslt::batch_offset, apart);
      }
      return l;
    };
    const int compute = wide          ? cublaslt::compute_64
                        : allow_tf32_ ? cublaslt::compute_32_fast_tf32
                                      : cublaslt::compute_32;
    plan p{made(library_.create_product, library_.destroy_product, compute, type),
           what.transpose_a ? layout(what.k, what.m, what.a_apart)
                            : layout(what.m, what.k, what.a_apart),
           what.transpose_b ? layout(what.n, what.k, what.b_apart)
                            : layout(what.k, what.n, what.b_apart),
           layout(what.m, what.n, what.m * what.n)};
    const auto preference = made(library_.create_preference, library_.destroy_preference);
    auto form = [](bool t) { return t ? cublaslt::transposed : cublaslt::as_it_is; };
    set(p.product, library_.set_product, cublaslt::transpose_a, form(what.transpose_b));
    set(p.product, library_.set_product, cublaslt::transpose_b, form(what.transpose_a));
    auto prefer = [&](int attribute, auto value) {
      set(preference, library_.set_preference, attribute, value);
    };
    prefer(cublaslt::most_workspace, std::uint64_t{workspace_.capacity()});
    prefer(cublaslt::alignment_of_a, what.align_b);
    prefer(cublaslt::alignment_of_b, what.align_a);
    prefer(cublaslt::alignment_of_c, what.align_c);
    prefer(cublaslt::alignment_of_d, what.align_c);
    cublaslt::heuristic best{};
    int found = 0;
    if (said == cublaslt::success)
      said = library_.find_algorithms(handle_, p.product.get(), p.b.get(), p.a.get(), p.c.get(),
                                      p.c.get(), preference.get(), 1, &best, &found);
    if (said == cublaslt::success) said = found ? best.state : int{cublaslt::not_supported};
    p.algorithm = best.found;
    if (said != cublaslt::success) refuse(p, what, said);
    return p;
  }

  /// The library does not do it. Said once.
  void refuse(plan& p, const key& what, int said) {
    p.refused = true;
    if (std::exchange(refused_, true)) return;
    logging::warning("GPU ", gpu(), ": cuBLASLt refuses a product of ", what.type, ", (", what.m,
                     ",", what.k, ") x (", what.k, ",", what.n, "): ", library_.status_string(said),
                     "; what it refuses takes deft's own kernel, which is slow");
  }

  const bool allow_tf32_;
  std::mutex guard_;
  bool refused_ = false;
  std::map<key, plan> plans_;
};

}  // namespace
}  // namespace deft::ext::gpu::cuda
