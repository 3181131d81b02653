// SPDX-License-Identifier: Apache-2.0
// deft/core/config.hpp: version, limits and the few macros there are.
#pragma once
#include <cstddef>
#include <cstdint>

#define DEFT_VERSION_MAJOR 0
#define DEFT_VERSION_MINOR 1
#define DEFT_VERSION_PATCH 0
#define DEFT_VERSION "0.1.0"

// Marks what both the host's and the device's compiler must see; and the namespace, in deft::gpu,
// of the GPUs whose kernels are being compiled.
#ifdef __CUDACC__
#define DEFT_HD __host__ __device__
#define DEFT_GPU_SYSTEM cuda
#else
#define DEFT_HD
#define DEFT_GPU_SYSTEM simulated
#endif

#if defined(__GNUC__) || defined(__clang__)
#define DEFT_ALWAYS_INLINE inline __attribute__((always_inline))
#define DEFT_INLINED __attribute__((always_inline))  // of a lambda, after its parameters
#define DEFT_NOINLINE __attribute__((noinline))
#define DEFT_FLATTEN __attribute__((flatten))  // everything it calls is inlined
#else
#define DEFT_ALWAYS_INLINE inline
#define DEFT_INLINED
#define DEFT_NOINLINE
#define DEFT_FLATTEN
#endif

namespace deft {

/// Highest rank of a tensor.
inline constexpr int max_rank = 8;

/// Most operations in one elementwise expression; beyond it, name an intermediate tensor.
inline constexpr int max_fused_operations = 64;

/// An extent that is known at run time only, as std::dynamic_extent in std::mdspan.
inline constexpr std::int64_t dyn = -1;

}  // namespace deft
