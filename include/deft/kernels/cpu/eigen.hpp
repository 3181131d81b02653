// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/eigen.hpp: Eigen's core, the one place that includes it.
#pragma once

// g++ 12 takes the undefined registers of its own AVX-512 intrinsics for mistakes.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <Eigen/Core>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
