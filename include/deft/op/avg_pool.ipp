// SPDX-License-Identifier: Apache-2.0
// deft/op/avg_pool.ipp: shape rules of avg_pool and its gradient.
#pragma once
#include <deft/op/avg_pool.hpp>

namespace deft {

ext::tensor_type op::avg_pool::infer(std::span<const ext::tensor_type> in) const {
  return checked(name, in[0]);
}
ext::tensor_type op::avg_pool_gradient::infer(std::span<const ext::tensor_type> in) const {
  expect(name, in[1], in[0]);
  return in[1];
}

}  // namespace deft
