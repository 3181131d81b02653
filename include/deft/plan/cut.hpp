// SPDX-License-Identifier: Apache-2.0
// deft/plan/cut.hpp: a placed graph cut into a part for each task.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <utility>
#include <vector>

namespace deft::plan {

/// What one task runs. Its nodes keep the order of the whole graph: every part keeps the same one,
/// so that parts which wait for each other cannot wait in a circle.
struct part {
  placement task;  ///< "/job:ps/replica:0/task:0"
  graph_def graph;
  std::vector<edge_def> fetches;
  std::vector<std::uint32_t> fetch_numbers;  ///< place of each among the plan's fetches
  std::uint64_t stream = 0;                  ///< of random numbers, the session's
};

/// Cuts `g` where a value crosses between tasks: a `send` behind the producer, once for each task
/// that needs it, and a `recv` before the first user. Within a part, a value that crosses between
/// devices goes through a `copy`. The parts of tasks that have nothing to do are not there.
std::vector<part> cut(const graph_def& g, std::span<const edge_def> fetches);

/// Job, replica and task of a device.
placement task_of(const device_name& device);

}  // namespace deft::plan
