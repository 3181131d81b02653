// SPDX-License-Identifier: Apache-2.0
// deft/core/config.hpp: version, limits and macros.
#pragma once

#if defined(__clang__) && !defined(__apple_build_version__) && __clang_major__ < 14
#error "deft needs clang 14 or newer: this one is older"
#define DEFT_NOT_COMPILED
#elif defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 12
#error "deft needs g++ 12 or newer: this one is older"
#define DEFT_NOT_COMPILED
#elif __cplusplus < 202002L
#error "deft needs C++20: compile with -std=c++20, or in CMake link deft::deft or deft::compiled"
#define DEFT_NOT_COMPILED
#elif !defined(__cpp_exceptions) && !defined(__CUDACC__)
#error "deft reports errors by exceptions: compile without -fno-exceptions"
#define DEFT_NOT_COMPILED
#elif defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "deft relies on NaN and exact rounding: compile without -ffast-math, -Ofast and the like"
#define DEFT_NOT_COMPILED
#endif
#ifdef DEFT_NOT_COMPILED
// Compilers continue after #error, and later messages would hide it; this makes them stop.
#include <deft/core/stop_after_the_error_above>
#endif

#include <cstddef>
#include <cstdint>

#define DEFT_VERSION_MAJOR 0
#define DEFT_VERSION_MINOR 1
#define DEFT_VERSION_PATCH 0
#define DEFT_VERSION "0.1.0"

// DEFT_HD marks functions for both host and device. DEFT_GPU_SYSTEM is the namespace, in
// deft::ext::gpu, of the GPUs whose kernels are being compiled.
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

/// What programs use. tests/exports/names.txt lists its names: programs say `using namespace deft`.
namespace deft {

/// For those who extend deft, and for deft itself: nodes, plans, kernels, devices, tasks, and what
/// operations are written with.
namespace ext {}

/// The operations, as types: each has a function in deft, of the same name.
namespace op {
using namespace ext;
}

namespace detail {
using namespace ext;
}

/// Defined by the implementation, for its version. A linker that does not find it prints its name,
/// which says what to do.
template <int Major, int Minor, int Patch>
bool link_deft_compiled_of_this_version_or_define_DEFT_IMPLEMENTATION();

#ifndef __CUDACC__
namespace detail {
// At the head of each file's code, so that linkers name it before all else that is missing. No tail
// call: its relocation would follow those of the section's other functions.
[[maybe_unused, gnu::used]] static bool needs_the_implementation() {
  return !link_deft_compiled_of_this_version_or_define_DEFT_IMPLEMENTATION<
      DEFT_VERSION_MAJOR, DEFT_VERSION_MINOR, DEFT_VERSION_PATCH>();
}
}  // namespace detail
#endif

/// Maximum rank of a tensor.
inline constexpr int max_rank = 8;

/// Maximum number of operations in one elementwise expression; for more, name an intermediate
/// tensor.
inline constexpr int max_fused_operations = 64;

/// An extent known only at run time, as std::dynamic_extent in std::mdspan.
inline constexpr std::int64_t dyn = -1;

}  // namespace deft
