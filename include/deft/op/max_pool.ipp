// SPDX-License-Identifier: Apache-2.0
// deft/op/max_pool.ipp: shape rules of max_pool and its gradients.
#pragma once
#include <deft/op/max_pool.hpp>

namespace deft {

ext::tensor_type op::max_pool::infer(std::span<const ext::tensor_type> in) const {
  return checked(name, in[0]);
}
ext::tensor_type op::max_pool_gradient::infer(std::span<const ext::tensor_type> in) const {
  expect(name, in[1], in[0]);
  return in[1];
}

ext::tensor_type op::max_pool_pick::infer(std::span<const ext::tensor_type> in) const {
  const ext::tensor_type y = checked(name, in[1]);
  if (in[0].type != in[1].type || !ext::may_equal(in[0].shape, in[1].shape))
    ext::fail(errc::invalid_argument, "[max_pool_pick] expects images like ", in[1], ", and got ",
              in[0]);
  return y;
}

}  // namespace deft
