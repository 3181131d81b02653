// SPDX-License-Identifier: Apache-2.0
// deft/op/conv2d.ipp: shape rules of conv2d and its gradients.
#pragma once
#include <deft/op/conv2d.hpp>

namespace deft {

ext::tensor_type op::convolution::checked(std::string_view op, const ext::tensor_type& x,
                                          const ext::tensor_type& filter) const {
  if (x.type != filter.type)
    ext::fail(errc::invalid_argument, "[", op, "] the operands' dtypes differ: ", x.type, " and ",
              filter.type, "; use cast");
  if (!ext::is_floating(x.type))
    ext::fail(errc::invalid_argument, "[", op, "] is not defined for ", x.type);
  dims out;
  if (const window_fault f = shape(x.shape, filter.shape, out); f != window_fault::none)
    refuse_windows(op, f, x.shape, true, filter.shape, stride, same);
  return {out, x.type};
}
void op::convolution::expect(std::string_view op, const ext::tensor_type& x,
                             const ext::tensor_type& filter, const ext::tensor_type& dz) const {
  const ext::tensor_type out = checked(op, x, filter);
  if (dz.type != out.type || !ext::may_equal(dz.shape, out.shape))
    ext::fail(errc::invalid_argument, "[", op, "] expects the gradient of ", out, ", and got ", dz);
}

ext::tensor_type op::conv2d::infer(std::span<const ext::tensor_type> in) const {
  return checked(name, in[0], in[1]);
}
ext::tensor_type op::conv2d_input_gradient::infer(std::span<const ext::tensor_type> in) const {
  expect(name, in[2], in[1], in[0]);
  return in[2];
}
ext::tensor_type op::conv2d_filter_gradient::infer(std::span<const ext::tensor_type> in) const {
  expect(name, in[1], in[2], in[0]);
  return in[2];
}

}  // namespace deft
