// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/fold_levels.hpp: how a reduction iterates over its input.
#pragma once
#include <deft/core/dims.hpp>
#include <deft/core/error.hpp>
#include <string_view>

namespace deft::ext {

/// The input as levels, outermost first, kept and folded alternately; extents of 1 are
/// dropped.
struct fold_levels {
  int count = 0;
  std::int64_t extent[max_rank + 2], stride[max_rank + 2];
  bool folded[max_rank + 2];

  fold_levels(const dims& x, const dims& axes) {
    for (int d = 0; d < x.rank(); ++d) {
      if (x[d] == 1) continue;
      const bool f = axes.contains(d);
      if (count > 0 && folded[count - 1] == f)
        extent[count - 1] *= x[d];
      else
        extent[count] = x[d], folded[count++] = f;
    }
    std::int64_t s = 1;
    for (int l = count; l-- > 0; s *= extent[l]) stride[l] = s;
  }
};

/// The axes of `x` over which sum_to sums, to get to the shape `to`.
inline dims summed_axes(const dims& x, const dims& to) {
  dims axes;
  const int more = x.rank() - to.rank();
  for (int d = 0; d < x.rank(); ++d)
    if (d < more || (to[d - more] == 1 && x[d] != 1)) axes.push_back(d);
  return axes;
}

/// Throws invalid_argument where results would be made of no elements.
inline void need_elements(std::string_view op, const dims& x, const dims& result) {
  if (x.elements() == 0 && result.elements() != 0)
    fail(errc::invalid_argument, "[", op, "] is undefined for zero elements: ", x);
}
/// The product of the extents from `axis` on.
inline std::int64_t elements_from(const dims& shape, int axis) {
  std::int64_t n = 1;
  for (int i = axis; i < shape.rank(); ++i) n *= shape[i];
  return n;
}

}  // namespace deft::ext
