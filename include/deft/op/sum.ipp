// SPDX-License-Identifier: Apache-2.0
// deft/op/sum.ipp: shape rule of sum.
#pragma once
#include <deft/op/sum.hpp>

namespace deft {

tensor_type op::sum::infer(std::span<const tensor_type> in) const {
  if (!is_numeric(in[0].type))
    fail(errc::invalid_argument, "[sum] is not defined for ", in[0].type);
  return {shape_checked(name, in[0].shape), in[0].type};
}

}  // namespace deft
