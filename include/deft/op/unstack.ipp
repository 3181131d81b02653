// SPDX-License-Identifier: Apache-2.0
// deft/op/unstack.ipp: an unstack as slices.
#pragma once
#include <deft/op/reshape.hpp>
#include <deft/op/slice.hpp>
#include <deft/op/unstack.hpp>

namespace deft::detail {

any_tensor unstack_part(const any_tensor& x, int axis, std::int64_t i, source_location w) {
  dims begin = dims::filled(x.rank(), 0), size = x.shape(), to;
  begin[axis] = i;
  size[axis] = 1;
  for (int a = 0; a < x.rank(); ++a)
    if (a != axis) to.push_back(size[a] == dyn ? op::reshape::extent_of(a) : size[a]);
  return add_reshape(slice(x, begin, size, w), to, w);
}

std::vector<any_tensor> add_unstack(const any_tensor& x, const dims& given, source_location w) {
  const int axis = given.size() == 1 ? normalize_axis(given[0], x.rank()) : -1;
  if (axis < 0 || x.shape()[axis] == dyn)
    refuse_call(x,
                str("[unstack] expects one axis whose extent is known, and got ", list_text(given),
                    " of ", x.shape()),
                w);
  std::vector<any_tensor> parts;
  for (std::int64_t i = 0; i < x.shape()[axis]; ++i) parts.push_back(unstack_part(x, axis, i, w));
  return parts;
}

}  // namespace deft::detail
