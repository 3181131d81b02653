// SPDX-License-Identifier: Apache-2.0
// deft/op/size_of.ipp: shape rule of size_of, and its value where the extents are known.
#pragma once
#include <deft/op/size_of.hpp>

namespace deft {

ext::tensor_type op::size_of::infer(std::span<const ext::tensor_type> in) const {
  dims sorted;
  if (!normalize_axes(axes, in[0].shape.rank(), sorted) || !(sorted == axes))
    ext::fail(errc::invalid_argument, "[size_of] expects axes of a tensor of rank ",
              in[0].shape.rank(), ", ascending and each once, and got ", ext::list_text(axes));
  return {dims{}, dtype::int64};
}

namespace detail {

any_tensor size_along(const any_tensor& x, const axes* given, source_location w) {
  dims along = axes_from_front("size_of", x, given, w), extents;
  for (auto a : along) extents.push_back(x.shape()[static_cast<int>(a)]);
  if (extents.is_static()) return add_constant(any_array::scalar(extents.elements()), w);
  const output in[] = {x.handle()};
  return apply_any(op::size_of{along}, in, w);
}

}  // namespace detail
}  // namespace deft
