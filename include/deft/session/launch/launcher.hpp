// SPDX-License-Identifier: Apache-2.0
// deft/session/launch/launcher.hpp: a whole cluster on this machine, each task a process of this
// binary.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace deft {

/// How far `step` is on the way to `last`, as a bar for a terminal.
std::string progress_bar(std::int64_t step, std::int64_t last);

/// Starts this program again for every task, with `--job_name`, `--task_index`, the cluster's hosts
/// and an inherited listening socket on an ephemeral port (`--listen_fd`), beside the arguments
/// given. Prints the cluster, then the tasks' lines as they come; lines "step N/M …" become
/// progress bars on a terminal. Returns the exit code once all have ended: 0, or that of the first
/// task that failed, after which the others are ended. Ctrl-C, SIGTERM and SIGHUP end all, in order
/// as far as 2 s are enough, and give 130; a task also ends when the launcher dies. Throws
/// invalid_argument for an argument that is a flag of its own to choose.
int launch_cluster(const std::vector<std::pair<std::string, int>>& jobs,
                   const std::vector<std::string>& arguments);

}  // namespace deft
