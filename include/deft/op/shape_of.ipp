// SPDX-License-Identifier: Apache-2.0
// deft/op/shape_of.ipp: the sizes along all axes.
#pragma once
#include <algorithm>
#include <deft/op/constant.hpp>
#include <deft/op/shape_of.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/stack.hpp>
#include <vector>

namespace deft {

any_tensor detail::add_shape_of(const any_tensor& x, ext::source_location w) {
  if (x.shape().is_static()) {
    any_array all(dtype::int64, {x.rank()});
    std::ranges::copy(x.shape(), all.mutable_data<std::int64_t>());
    return add_constant(std::move(all), w);
  }
  std::vector<any_tensor> extents;
  for (int d = 0; d < x.rank(); ++d) extents.push_back(size_of(x, axes{d}, w));
  return stack(axes{0}, extents);
}

}  // namespace deft
