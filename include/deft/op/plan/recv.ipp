// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/recv.ipp: shape rule of recv.
#pragma once
#include <deft/op/base/shapes.hpp>
#include <deft/op/plan/recv.hpp>

namespace deft {

ext::tensor_type op::recv::infer(std::span<const ext::tensor_type>) const {
  if (key.empty()) ext::fail(errc::invalid_argument, "[recv] expects a key");
  (void)parse_device(peer);
  expect_extents(name, shape, true);
  return {shape, type};
}

}  // namespace deft
