// SPDX-License-Identifier: Apache-2.0
// deft/op/split.ipp: a split as slices.
#pragma once
#include <deft/op/slice.hpp>
#include <deft/op/split.hpp>

namespace deft::detail {

any_tensor split_part(const any_tensor& x, int axis, std::int64_t n, std::int64_t i,
                      source_location w) {
  dims begin = dims::filled(x.rank(), 0), size = x.shape();
  size[axis] /= n;
  begin[axis] = i * size[axis];
  return slice(x, begin, size, w);
}

std::vector<any_tensor> add_split(const any_tensor& x, const dims& given, std::int64_t n,
                                  source_location w) {
  const int axis = given.size() == 1 ? normalize_axis(given[0], x.rank()) : -1;
  if (axis < 0)
    refuse_call(x,
                str("[split] expects one axis of a tensor of rank ", x.rank(), ", and got ",
                    list_text(given)),
                w);
  const std::int64_t extent = x.shape()[axis];
  if (n < 1 || extent == dyn || extent % n != 0)
    refuse_call(x,
                str("[split] expects an axis whose extent is known and a multiple of the ", n,
                    " parts, and got axis ", axis, " of ", x.shape()),
                w);
  std::vector<any_tensor> parts;
  for (std::int64_t i = 0; i < n; ++i) parts.push_back(split_part(x, axis, n, i, w));
  return parts;
}

}  // namespace deft::detail
