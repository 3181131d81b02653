// SPDX-License-Identifier: Apache-2.0
// deft/op/squeeze.ipp: axes known only at run time.
#pragma once
#include <deft/op/squeeze.hpp>

namespace deft::detail {

any_tensor squeeze_checked(const any_tensor& x, const dims* given, source_location w) {
  const dims& shape = x.shape();
  dims all = axes_of_one(shape), to;
  if ((given && !op::normalize_axes(*given, x.rank(), all)) || !without_axes(shape, all, to))
    refuse_call(x,
                str("[squeeze] expects axes of extent 1, each once, and got ", list_text(*given),
                    " of ", shape),
                w);
  if (all.empty()) return x;
  for (int i = 0, k = 0; i < shape.rank(); ++i)
    if (!all.contains(i)) to[k] = shape[i] == dyn ? op::reshape::extent_of(i) : shape[i], ++k;
  return add_reshape(x, to, w);
}

}  // namespace deft::detail
