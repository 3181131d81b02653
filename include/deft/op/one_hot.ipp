// SPDX-License-Identifier: Apache-2.0
// deft/op/one_hot.ipp: shape rule of one_hot.
#pragma once
#include <deft/op/one_hot.hpp>

namespace deft {

ext::tensor_type op::one_hot::infer(std::span<const ext::tensor_type> in) const {
  if (!ext::is_integer(in[0].type))
    ext::fail(errc::invalid_argument, "[one_hot] expects integer indices, and got ", in[0].type);
  if (depth < 0) ext::fail(errc::invalid_argument, "[one_hot] expects a depth, and got ", depth);
  if (in[0].shape.rank() == max_rank)
    ext::fail(errc::invalid_argument, "[one_hot] the result would have a rank above ", max_rank);
  return {shape(in[0].shape, depth), type};
}

}  // namespace deft
