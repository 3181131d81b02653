// SPDX-License-Identifier: Apache-2.0
// deft/op/max.ipp: shape rules of max and first_max.
#pragma once
#include <deft/op/max.hpp>

namespace deft {

ext::tensor_type op::max::infer(std::span<const ext::tensor_type> in) const {
  if (!ext::is_numeric(in[0].type))
    ext::fail(errc::invalid_argument, "[max] is not defined for ", in[0].type);
  dims out = shape_checked(name, in[0].shape);
  for (auto a : axes)
    if (in[0].shape[static_cast<int>(a)] == 0 && out.elements() != 0)
      ext::fail(errc::invalid_argument, "[max] is undefined for zero elements: axis ", a, " of ",
                in[0].shape);
  return {out, in[0].type};
}

ext::tensor_type op::first_max::infer(std::span<const ext::tensor_type> in) const {
  dims sorted;
  if (!ext::is_numeric(in[0].type))
    ext::fail(errc::invalid_argument, "[first_max] is not defined for ", in[0].type);
  if (!normalize_axes(axes, in[0].shape.rank(), sorted) || !(sorted == axes))
    ext::fail(errc::invalid_argument, "[first_max] expects axes of a tensor of rank ",
              in[0].shape.rank(), ", ascending and each once, and got ", ext::list_text(axes));
  return {in[0].shape, dtype::boolean};
}

}  // namespace deft
