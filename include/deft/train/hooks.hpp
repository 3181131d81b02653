// SPDX-License-Identifier: Apache-2.0
// deft/train/hooks.hpp: hooks that save, log and count.
#pragma once
#include <chrono>
#include <cstdint>
#include <deft/train/hook.hpp>
#include <string>
#include <utility>
#include <vector>

namespace deft {

/// When save_checkpoints saves, and what it keeps.
struct checkpoint_policy {
  std::string name = "model";    ///< of checkpoints: "model-1000"
  std::int64_t every_steps = 0;  ///< when the global step has grown by so much; 0: however much
  /// When this time has passed since the last one; 0: however long.
  std::chrono::nanoseconds interval = std::chrono::minutes(10);
  int max_to_keep = 5;          ///< how many checkpoints are kept; 0: all
  double keep_every_hours = 0;  ///< see saver_options
};
/// Saves all variables of the graph into `directory`: when the session begins, as `policy` says,
/// and when it ends. On workers other than the chief it does nothing. The session's constructor
/// throws failed_precondition where the graph has no global step, invalid_argument if
/// policy.every_steps is negative, and what saver::save throws.
hook_ref save_checkpoints(const std::string& directory, checkpoint_policy policy = {});

/// Logs tensors by name at level info: "step 100: loss = 0.25", of the first run, also after a
/// recovery, and of one run whenever the global step has grown by `every`. Other runs do not fetch
/// them. The session's constructor throws failed_precondition where the graph has no global step,
/// invalid_argument if `every` is negative.
hook_ref log_tensors(std::vector<std::pair<std::string, any_tensor>> tensors,
                     std::int64_t every = 100);

/// Logs at level info how many steps a second the global step grows, over `every` steps each.
/// The session's constructor throws as for log_tensors.
hook_ref count_steps(std::int64_t every = 100);

/// Traces the first run, also after a recovery, and one whenever the global step has grown by
/// `every`, into files "trace-STEP.json" of `directory`, which is created, or
/// "trace-worker-1-STEP.json" on a task of a cluster: see write_chrome_trace.
/// The session's constructor throws as for log_tensors, and if the directory cannot be created.
hook_ref save_traces(const std::string& directory, std::int64_t every = 1000);

/// Runs `op` once when the session ends in order.
hook_ref run_at_end(operation op);

}  // namespace deft
