// SPDX-License-Identifier: Apache-2.0
// deft/plan/cut.hpp: cuts a placed graph into one part for each task.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <utility>
#include <vector>

namespace deft::ext::plan {

/// What one task runs. The nodes of every part keep the order that they have in the whole graph, so
/// that parts that wait for each other cannot deadlock.
struct part {
  placement task;  ///< "/job:ps/replica:0/task:0"
  graph_def graph;
  std::vector<edge_def> fetches;
  std::vector<std::uint32_t> fetch_numbers;  ///< index of each among the plan's fetches
  std::uint64_t stream = 0;                  ///< the session's stream of random numbers
};

/// Cuts `g` at every transfer between tasks: inserts a `send` after the producer, one for each task
/// that needs the value, and a `recv` before the first consumer. A transfer between two devices of
/// one task becomes a `copy`. Tasks that have nothing to do get no part.
std::vector<part> cut(const graph_def& g, std::span<const edge_def> fetches);
/// The same for the body of a function, all of whose nodes are on one task: its values are copied
/// to the device `results`.
part cut_body(const graph_def& g, std::span<const edge_def> fetches, placement results);

/// Job, replica and task of a device.
placement task_of(const device_name& device);

}  // namespace deft::ext::plan
