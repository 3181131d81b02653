// SPDX-License-Identifier: Apache-2.0
// deft/op/one_hot.ipp: shape rule of one_hot.
#pragma once
#include <deft/op/one_hot.hpp>

namespace deft {

tensor_type op::one_hot::infer(std::span<const tensor_type> in) const {
  if (!is_integer(in[0].type))
    fail(errc::invalid_argument, "[one_hot] expects integer indices, and got ", in[0].type);
  if (depth < 0) fail(errc::invalid_argument, "[one_hot] expects a depth, and got ", depth);
  if (in[0].shape.rank() == max_rank)
    fail(errc::invalid_argument, "[one_hot] the result would have a rank above ", max_rank);
  return {shape(in[0].shape, depth), type};
}

}  // namespace deft
