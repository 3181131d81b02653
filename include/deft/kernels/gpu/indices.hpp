// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/indices.hpp: indices into rows.
#pragma once
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/gpu/stream.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

/// Indices into rows.
template <class Index>
struct row_indices {
  const Index* of;
  std::int64_t rows;
  fault_kind kind;
  fault_report report;

  DEFT_HD bool check(std::int64_t i) const {
    const bool sound = of[i] >= 0 && of[i] < rows;
    if (!sound) report(kind, of[i], rows);
    return sound;
  }
  /// Where the rows have no elements.
  DEFT_HD void operator()(std::int64_t i) const { check(i); }
};

}  // namespace
}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
