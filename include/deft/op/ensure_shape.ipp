// SPDX-License-Identifier: Apache-2.0
// deft/op/ensure_shape.ipp: shape rule of ensure_shape, which is what a run checks.
#pragma once
#include <deft/op/ensure_shape.hpp>

namespace deft {

tensor_type op::ensure_shape::infer(std::span<const tensor_type> in) const {
  expect_extents(name, shape, true);
  tensor_type out = in[0];
  if (!unify(in[0].shape, shape, out.shape))
    fail(errc::invalid_argument, "[tensor] the value has other extents than its tensor: expected ",
         tensor_type{shape, in[0].type}, ", and got ", in[0]);
  return out;
}

any_tensor ensure_shape(const any_tensor& x, const dims& shape, source_place w) {
  return any_tensor(detail::as_declared(x.handle(), {shape, x.type()}, w));
}

}  // namespace deft
