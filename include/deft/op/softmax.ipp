// SPDX-License-Identifier: Apache-2.0
// deft/op/softmax.ipp: shape rule of softmax.
#pragma once
#include <deft/op/softmax.hpp>

namespace deft {

tensor_type op::softmax::infer(std::span<const tensor_type> in) const {
  if (!is_floating(in[0].type))
    fail(errc::invalid_argument, "[softmax] is not defined for ", in[0].type);
  if (in[0].shape.rank() < 1)
    fail(errc::invalid_argument, "[softmax] expects a last axis, and got a scalar");
  return in[0];
}

}  // namespace deft
