// SPDX-License-Identifier: Apache-2.0
// deft/op/min.ipp: shape rules of min and first_min.
#pragma once
#include <deft/op/min.hpp>

namespace deft {

ext::tensor_type op::min::infer(std::span<const ext::tensor_type> in) const {
  if (!ext::is_numeric(in[0].type))
    ext::fail(errc::invalid_argument, "[min] is not defined for ", in[0].type);
  dims out = shape_checked(name, in[0].shape);
  for (auto a : axes)
    if (in[0].shape[static_cast<int>(a)] == 0 && out.elements() != 0)
      ext::fail(errc::invalid_argument, "[min] is undefined for zero elements: axis ", a, " of ",
                in[0].shape);
  return {out, in[0].type};
}

ext::tensor_type op::first_min::infer(std::span<const ext::tensor_type> in) const {
  dims sorted;
  if (!ext::is_numeric(in[0].type))
    ext::fail(errc::invalid_argument, "[first_min] is not defined for ", in[0].type);
  if (!normalize_axes(axes, in[0].shape.rank(), sorted) || !(sorted == axes))
    ext::fail(errc::invalid_argument, "[first_min] expects axes of a tensor of rank ",
              in[0].shape.rank(), ", ascending and each once, and got ", ext::list_text(axes));
  return {in[0].shape, dtype::boolean};
}

}  // namespace deft
