// SPDX-License-Identifier: Apache-2.0
// deft/session/launch/launcher.hpp: runs a whole cluster on this machine, each task a process of
// this program.
#pragma once
#include <cstdint>
#include <deft/core/config.hpp>
#include <string>
#include <utility>
#include <vector>

namespace deft {

/// A progress bar of 20 characters for a terminal, filled to `step / last`.
std::string progress_bar(std::int64_t step, std::int64_t last);

/// Options of launch_cluster; every member has a default:
/// `launch_cluster({{"ps", 1}, {"worker", 2}}, {}, {.restarts = 3})`.
struct launch_options {
  /// How many tasks that fail, or are killed, are started again, in all, at their addresses: in a
  /// training job that has checkpoints they go on where they were. A task that fails within 10 s of
  /// its start is started again after a pause: 0 s, then 0.5 s, 1 s, … and at most 10 s.
  int restarts = 0;
  /// How many seconds tasks have to end, as to write a last checkpoint, once they have been told.
  int grace = 30;
  /// Each task runs on an equal share of the processors, as mpirun --bind-to does: faster where
  /// tasks outnumber processors and nothing else runs, as the system then may keep two tasks that
  /// compute on one of them.
  bool bind = false;
};

/// Starts this program again for every task of `jobs` (name and number of tasks), with
/// `--job_name`, `--task_index`, the cluster's hosts, an inherited listening socket on an ephemeral
/// port (`--listen_fd`), and `arguments`. Prints the cluster, then the output of the tasks line by
/// line; lines "step N/M …" become progress bars on a terminal. Returns once all tasks have ended:
/// 0, or the exit code of the first task that failed, after which the others are terminated. Where
/// tasks outnumber processors their threads are of SCHED_BATCH: those that wake do not interrupt
/// those that run. Ctrl-C, SIGTERM and SIGHUP end all tasks and return 128 + the signal: the
/// workers get SIGTERM, the parameter servers once the workers have ended, and all that still run
/// when their time to end is over, or at a second signal, SIGKILL. If the launcher dies, its tasks
/// are killed. Throws invalid_argument, before anything is started, for jobs that are no cluster,
/// if `arguments` contain a flag that the launcher sets, or if a number in `options` is below 0.
int launch_cluster(const std::vector<std::pair<std::string, int>>& jobs,
                   const std::vector<std::string>& arguments, const launch_options& options = {});

}  // namespace deft
