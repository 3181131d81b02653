// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/cublaslt.hpp: what is used of cuBLASLt's C interface, declared anew: its
// header does not come with nvcc. Enumerations are ints and what is opaque is void*; a test
// compares all of it with the header where that is.
#pragma once
#include <cstddef>
#include <cstdint>

namespace deft::ext::gpu::cuda::cublaslt {

enum status : int { success = 0, not_supported = 15 };
enum operation : int { as_it_is = 0, transposed = 1 };
enum data_type : int { real_32 = 0, real_64 = 1 };
enum compute_type : int { compute_32 = 68, compute_64 = 70, compute_32_fast_tf32 = 77 };
/// Attributes of a product, each an operation.
enum product_attribute : int { transpose_a = 3, transpose_b = 4 };
/// Attributes of a layout: matrices, as std::int32_t, and elements from one to the next, as
/// std::int64_t.
enum layout_attribute : int { batch_count = 5, batch_offset = 6 };
/// Attributes of a preference: bytes, the first as std::uint64_t, the others as std::uint32_t.
enum preference_attribute : int {
  most_workspace = 1,
  alignment_of_a = 5,
  alignment_of_b = 6,
  alignment_of_c = 7,
  alignment_of_d = 8,
};

struct algorithm {
  std::uint64_t data[8];
};
struct heuristic {
  algorithm found;
  std::size_t workspace;  ///< bytes
  int state;              ///< a status
  float waves;
  int reserved[4];
};

/// The functions. All but status_string return a status.
struct functions {
  const char* (*status_string)(int) = nullptr;
  int (*create)(void** handle) = nullptr;
  int (*destroy)(void* handle) = nullptr;
  int (*create_product)(void** product, int compute, int scale) = nullptr;
  int (*destroy_product)(void* product) = nullptr;
  int (*set_product)(void* product, int attribute, const void*, std::size_t bytes) = nullptr;
  /// Of a matrix that is stored by columns, `ld` elements from one to the next.
  int (*create_layout)(void** layout, int type, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t ld) = nullptr;
  int (*destroy_layout)(void* layout) = nullptr;
  int (*set_layout)(void* layout, int attribute, const void*, std::size_t bytes) = nullptr;
  int (*create_preference)(void** preference) = nullptr;
  int (*destroy_preference)(void* preference) = nullptr;
  int (*set_preference)(void* preference, int attribute, const void*, std::size_t bytes) = nullptr;
  /// The best first.
  int (*find_algorithms)(void* handle, void* product, void* a, void* b, void* c, void* d,
                         void* preference, int most, heuristic* results, int* found) = nullptr;
  /// Queues d = alpha op(a) op(b) + beta c.
  int (*multiply)(void* handle, void* product, const void* alpha, const void* a, void* layout_a,
                  const void* b, void* layout_b, const void* beta, const void* c, void* layout_c,
                  void* d, void* layout_d, const algorithm*, void* workspace, std::size_t bytes,
                  void* stream) = nullptr;

  /// f(name in the library, function) for each.
  template <class F>
  void each(F f) {
    f("cublasLtGetStatusString", status_string);
    f("cublasLtCreate", create);
    f("cublasLtDestroy", destroy);
    f("cublasLtMatmulDescCreate", create_product);
    f("cublasLtMatmulDescDestroy", destroy_product);
    f("cublasLtMatmulDescSetAttribute", set_product);
    f("cublasLtMatrixLayoutCreate", create_layout);
    f("cublasLtMatrixLayoutDestroy", destroy_layout);
    f("cublasLtMatrixLayoutSetAttribute", set_layout);
    f("cublasLtMatmulPreferenceCreate", create_preference);
    f("cublasLtMatmulPreferenceDestroy", destroy_preference);
    f("cublasLtMatmulPreferenceSetAttribute", set_preference);
    f("cublasLtMatmulAlgoGetHeuristic", find_algorithms);
    f("cublasLtMatmul", multiply);
  }
};

}  // namespace deft::ext::gpu::cuda::cublaslt
