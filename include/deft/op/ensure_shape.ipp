// SPDX-License-Identifier: Apache-2.0
// deft/op/ensure_shape.ipp: shape rule of ensure_shape, which is what a run checks.
#pragma once
#include <deft/op/ensure_shape.hpp>

namespace deft {

ext::tensor_type op::ensure_shape::infer(std::span<const ext::tensor_type> in) const {
  expect_extents(name, shape, true);
  ext::tensor_type out = in[0];
  if (!unify(in[0].shape, shape, out.shape))
    ext::fail(errc::invalid_argument,
              "[tensor] the value has other extents than its tensor: expected ",
              ext::tensor_type{shape, in[0].type}, ", and got ", in[0]);
  return out;
}

any_tensor ensure_shape(const any_tensor& x, const dims& shape, ext::source_location w) {
  return any_tensor(detail::as_declared(x.handle(), {shape, x.type()}, w));
}

}  // namespace deft
