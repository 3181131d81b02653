// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/region_extents.ipp: extents, classes and axes of regions.
#pragma once
#include <deft/kernels/spec/region_extents.hpp>
#include <deft/op/base/reduction.hpp>

namespace deft::ext {

dims region_extents(const program& region, std::span<const tensor_type> in) {
  dims extents;
  for (const auto& t : in) {
    dims wider;
    broadcast(extents, t.shape, wider);
    extents = wider;
  }
  if (extents.elements() != 0) return extents;
  for (const auto& c : region.code) {
    if (!c.is_fold()) continue;
    const dims axes = folded_axes(c.leaves, region.row_axes, extents);
    const tensor_type of[] = {{extents, c.type}};
    std::vector<tensor_type> out;
    infer_types(*c.op, {of, encode(op::reduction{axes, false})}, out);
  }
  return extents;
}

extent_class class_of(const dims& shape, const dims& all, int outer) {
  const int missing = all.rank() - shape.rank();
  auto extent = [&](int d) { return d < missing ? 1 : shape[d - missing]; };
  bool is_all = true, has_rows = false, has_columns = false, is_part = false;
  for (int d = 0; d < all.rank(); ++d) is_all = is_all && extent(d) == all[d];
  if (is_all) return extent_class::element;
  for (int d = 0; d < all.rank(); ++d)
    if (extent(d) != 1) (d < outer ? has_rows : has_columns) = true;
  for (int d = 0; d < all.rank(); ++d)
    is_part = is_part || ((d < outer ? has_rows : has_columns) && extent(d) != all[d]);
  if (is_part || (has_rows && has_columns))
    fail(errc::unimplemented, "[fused] ", shape, " is neither rows nor columns of ", all);
  return has_rows ? extent_class::row : has_columns ? extent_class::column : extent_class::whole;
}

dims folded_axes(extent_class leaves, int row_axes, const dims& extents) {
  dims axes;
  const int outer = extents.rank() - row_axes;
  for (int d = 0; d < extents.rank(); ++d)
    if (leaves == extent_class::whole || (d < outer) == (leaves == extent_class::column))
      axes.push_back(d);
  return axes;
}

}  // namespace deft::ext
