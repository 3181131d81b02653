// SPDX-License-Identifier: Apache-2.0
// tests/execute/gpu/nvrtc.hpp: helpers for tests of NVIDIA's run-time compiler.
#pragma once
#include <deft/execute/gpu/nvrtc.hpp>

#include "testing.hpp"

namespace testing {

/// Whether a test must be skipped because NVRTC is missing; prints a message then.
inline bool skipped_without_nvrtc() {
  if (deft::gpu::has_nvrtc()) return false;
  MESSAGE("skipped: libnvrtc was not found");
  return true;
}

}  // namespace testing
