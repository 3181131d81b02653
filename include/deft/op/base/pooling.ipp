// SPDX-License-Identifier: Apache-2.0
// deft/op/base/pooling.ipp: shape rule of poolings.
#pragma once
#include <deft/op/base/pooling.hpp>

namespace deft {

ext::tensor_type op::pooling::checked(std::string_view op, const ext::tensor_type& x) const {
  if (!ext::is_floating(x.type))
    ext::fail(errc::invalid_argument, "[", op, "] is not defined for ", x.type);
  dims out;
  if (const window_fault f = shape(x.shape, out); f != window_fault::none)
    refuse_windows(op, f, x.shape, false, window, stride, same);
  return {out, x.type};
}
void op::pooling::expect(std::string_view op, const ext::tensor_type& x,
                         const ext::tensor_type& dz) const {
  const ext::tensor_type out = checked(op, x);
  if (dz.type != out.type || !ext::may_equal(dz.shape, out.shape))
    ext::fail(errc::invalid_argument, "[", op, "] expects the gradient of ", out, ", and got ", dz);
}

}  // namespace deft
