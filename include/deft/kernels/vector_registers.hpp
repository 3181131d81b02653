// SPDX-License-Identifier: Apache-2.0
// deft/kernels/vector_registers.hpp: the vector instructions that a file is compiled for, which all
// files of a program have in common.
#pragma once
#include <deft/core/config.hpp>

namespace deft::ext::cpu {

/// Bytes of the widest register that Eigen uses here. Where it uses none, those of the widest
/// element.
#if defined(EIGEN_DONT_VECTORIZE) || defined(EIGEN_DONT_ALIGN) || \
    (defined(EIGEN_MAX_ALIGN_BYTES) && EIGEN_MAX_ALIGN_BYTES == 0)
inline constexpr int register_bytes = 8;
#elif defined(__AVX512F__) && defined(__FMA__)
inline constexpr int register_bytes = 64;
#elif defined(__AVX__)
inline constexpr int register_bytes = 32;
#elif defined(__SSE2__) || defined(__ARM_NEON)
inline constexpr int register_bytes = 16;
#else
inline constexpr int register_bytes = 8;
#endif
/// Each element is a register of its own.
inline constexpr bool scalar_registers = register_bytes == 8;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
inline constexpr bool fused_multiply_add = !scalar_registers;
#else
inline constexpr bool fused_multiply_add = false;
#endif

}  // namespace deft::ext::cpu

namespace deft {

/// Defined by the implementation for the instructions that it was compiled for, so that a file
/// which was compiled for others does not link, instead of sharing half of its inline functions
/// with it: the linker names it, with the bytes of a register and whether there are fused
/// multiply-adds, as this file has them.
template <int RegisterBytes, bool FusedMultiplyAdd>
bool deft_compiled_has_other_vector_flags_than_this_file();

namespace detail {
// As needs_the_implementation() in core/config.hpp.
[[maybe_unused, gnu::used]] static bool needs_the_same_vector_flags() {
  return !deft_compiled_has_other_vector_flags_than_this_file<cpu::register_bytes,
                                                              cpu::fused_multiply_add>();
}
}  // namespace detail

}  // namespace deft
