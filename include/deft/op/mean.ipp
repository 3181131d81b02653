// SPDX-License-Identifier: Apache-2.0
// deft/op/mean.ipp: shape rule of mean.
#pragma once
#include <deft/op/mean.hpp>

namespace deft {

ext::tensor_type op::mean::infer(std::span<const ext::tensor_type> in) const {
  if (!ext::is_floating(in[0].type))
    ext::fail(errc::invalid_argument, "[mean] expects a floating tensor, and got ", in[0].type,
              "; use cast");
  return {shape_checked(name, in[0].shape), in[0].type};
}

}  // namespace deft
