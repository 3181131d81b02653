// SPDX-License-Identifier: Apache-2.0
// deft/op/cumsum.ipp: shape rule of cumsum.
#pragma once
#include <deft/op/cumsum.hpp>

namespace deft {

ext::tensor_type op::cumsum::infer(std::span<const ext::tensor_type> in) const {
  if (!ext::is_numeric(in[0].type))
    ext::fail(errc::invalid_argument, "[cumsum] is not defined for ", in[0].type);
  if (axis < 0 || axis >= in[0].shape.rank())
    ext::fail(errc::invalid_argument, "[cumsum] expects an axis of a tensor of rank ",
              in[0].shape.rank(), ", and got ", axis);
  return in[0];
}

any_tensor detail::add_cumsum(const any_tensor& x, const dims& given, const cumsum_options& options,
                              ext::source_location w) {
  const int axis = one_axis("cumsum", x, given, w);
  const ext::output in[] = {x.handle()};
  return apply_any(op::cumsum{axis, options.exclusive, options.reverse}, in, w);
}

}  // namespace deft
