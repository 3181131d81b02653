// SPDX-License-Identifier: Apache-2.0
// tests/execute/gpu/nvrtc.hpp: what tests of NVIDIA's run-time compiler share.
#pragma once
#include <deft/execute/gpu/nvrtc.hpp>

#include "testing.hpp"

namespace testing {

/// Whether a test cannot run as there is no NVRTC, which it then says.
inline bool skipped_without_nvrtc() {
  if (deft::gpu::has_nvrtc()) return false;
  MESSAGE("skipped: libnvrtc was not found");
  return true;
}

}  // namespace testing
