// SPDX-License-Identifier: Apache-2.0
// deft/op/flatten.ipp: axes known only at run time.
#pragma once
#include <deft/op/flatten.hpp>

namespace deft::detail {

any_tensor flatten_checked(const any_tensor& x, const dims& given, source_location w) {
  dims to;
  if (given.size() != 1 || !flattened(x.shape(), given[0], to))
    refuse_call(x,
                str("[flatten] expects one axis of a tensor of rank ", x.rank(), ", and got ",
                    list_text(given)),
                w);
  if (to == x.shape()) return x;
  for (int i = 0; i + 1 < to.rank(); ++i)
    if (to[i] == dyn) to[i] = op::reshape::extent_of(i);
  return add_reshape(x, to, w);
}

}  // namespace deft::detail
