// SPDX-License-Identifier: Apache-2.0
// deft/op/sum.ipp: shape rule of sum.
#pragma once
#include <deft/op/sum.hpp>

namespace deft {

ext::tensor_type op::sum::infer(std::span<const ext::tensor_type> in) const {
  if (!ext::is_numeric(in[0].type))
    ext::fail(errc::invalid_argument, "[sum] is not defined for ", in[0].type);
  return {shape_checked(name, in[0].shape), in[0].type};
}

}  // namespace deft
