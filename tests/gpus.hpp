// SPDX-License-Identifier: Apache-2.0
// tests/gpus.hpp: which GPUs tests run on.
#pragma once
#include <cstdlib>
#include <string_view>

namespace testing {

/// Whether DEFT_TEST_GPUS=cuda asks for this machine's own; main() has seen to it that there are
/// some. Else they are simulated.
inline bool on_cuda() {
  const char* const asked = std::getenv("DEFT_TEST_GPUS");
  return asked && asked == std::string_view("cuda");
}

/// Cases that need this machine's own GPUs are of this suite; others never see those.
inline constexpr const char* needs_cuda = "needs CUDA";

}  // namespace testing
