// SPDX-License-Identifier: Apache-2.0
// deft/session/thread_cache.hpp: threads for what may take long, kept for a while once made.
#pragma once
#include <functional>

namespace deft {

/// Runs `f` on another thread, soon. `f` must not throw.
void run_elsewhere(std::function<void()> f);

}  // namespace deft
