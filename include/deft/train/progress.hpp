// SPDX-License-Identifier: Apache-2.0
// deft/train/progress.hpp: a line or a bar that says how training goes.
#pragma once
#include <deft/train/hook.hpp>

namespace deft {

/// Shows "step 400/2000  loss 0.31  9876 examples/s": step is the global step, examples are this
/// process's. On a terminal the line is a bar and stays in its place; elsewhere a line comes every
/// half second, the first and last one in any case. The session's constructor throws
/// failed_precondition where the graph has no global step.
hook_ref show_progress(const any_tensor& loss, std::int64_t last_step, std::int64_t batch_size);

}  // namespace deft
