// SPDX-License-Identifier: Apache-2.0
// deft/train/progress.hpp: training progress as a line or a bar.
#pragma once
#include <deft/train/hook.hpp>

namespace deft {

/// Shows "step 400/2000  loss 0.31  9876 examples/s": step is the global step, examples are this
/// process's. On a terminal it is a bar that is redrawn in place. Otherwise a line is printed every
/// three seconds, and always for the first and the last step. The session's constructor throws
/// failed_precondition if the graph has no global step.
hook_ref show_progress(const any_tensor& loss, std::int64_t last_step, std::int64_t batch_size);

}  // namespace deft
