// SPDX-License-Identifier: Apache-2.0
// deft/op/argmin.ipp: shape rule of argmin, and axes known only at run time.
#pragma once
#include <deft/op/argmin.hpp>

namespace deft {

ext::tensor_type op::argmin::infer(std::span<const ext::tensor_type> in) const {
  const dims& x = in[0].shape;
  if (!ext::is_numeric(in[0].type))
    ext::fail(errc::invalid_argument, "[argmin] is not defined for ", in[0].type);
  if (axis < 0 || axis >= x.rank())
    ext::fail(errc::invalid_argument, "[argmin] expects an axis of a tensor of rank ", x.rank(),
              ", and got ", axis);
  if (x[static_cast<int>(axis)] == 0)
    ext::fail(errc::invalid_argument, "[argmin] is undefined for zero elements: axis ", axis,
              " of ", x);
  return {without_axis(x, axis), dtype::int64};
}

namespace detail {

any_tensor add_argmin(const any_tensor& x, const dims& given, source_location w) {
  const output in[] = {x.handle()};
  return apply_any(op::argmin{one_axis("argmin", x, given, w)}, in, w);
}

}  // namespace detail
}  // namespace deft
