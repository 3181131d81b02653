// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/indices.hpp: indices into rows, and kernels chosen by their dtype.
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

template <class F>
kernel_ptr make_by_index(const node_def& n, dtype t, F&& f) {
  if (t == dtype::int32) return f.template operator()<std::int32_t>();
  if (t == dtype::int64) return f.template operator()<std::int64_t>();
  no_kernel(n, t);
}
template <class F>
kernel_ptr make_by_number(const node_def& n, dtype t, F&& f) {
  return visit_dtype(t, [&]<class T>() -> kernel_ptr {
    if constexpr (std::is_same_v<T, bool>)
      no_kernel(n, t);
    else
      return f.template operator()<T>();
  });
}

}  // namespace
}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
