// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/strided_index.hpp: device code that iterates over some axes of an array, in
// order.
#pragma once
#include <deft/kernels/gpu/divider.hpp>

namespace deft::ext::gpu {

/// Offsets, in elements, of numbers that count along some levels, the innermost first.
struct walk {
  int count = 0;
  divider extent[max_rank];
  std::int64_t stride[max_rank] = {};

  /// From the innermost level on.
  void add(std::int64_t e, std::int64_t s) { extent[count] = divider(e), stride[count++] = s; }
  std::int64_t size() const {
    std::int64_t n = 1;
    for (int i = 0; i < count; ++i) n *= extent[i].by();
    return n;
  }
  DEFT_HD std::int64_t offset(std::int64_t index) const {
    if (count == 0) return 0;
    std::int64_t o = 0;
#ifdef __CUDA_ARCH__
#pragma unroll 1  // else eight 64-bit divisions wherever an element is read
#endif
    for (int i = 0; i + 1 < count; ++i) o += extent[i].cut(index) * stride[i];
    return o + index * stride[count - 1];
  }
};

}  // namespace deft::ext::gpu
