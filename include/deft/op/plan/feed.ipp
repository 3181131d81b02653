// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/feed.ipp: shape rule of feed.
#pragma once
#include <deft/op/base/shapes.hpp>
#include <deft/op/plan/feed.hpp>

namespace deft {

ext::tensor_type op::feed::infer(std::span<const ext::tensor_type>) const {
  if (index < 0) ext::fail(errc::invalid_argument, "[feed] expects a feed number, and got ", index);
  expect_extents(name, shape, true);
  return {shape, type};
}

}  // namespace deft
