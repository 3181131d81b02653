// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/send.ipp: shape rule of send.
#pragma once
#include <deft/op/plan/send.hpp>

namespace deft {

void op::send::infer(std::span<const ext::tensor_type>) const {
  if (key.empty()) ext::fail(errc::invalid_argument, "[send] expects a key");
  (void)parse_device(peer);
}

}  // namespace deft
