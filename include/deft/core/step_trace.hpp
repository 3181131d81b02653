// SPDX-License-Identifier: Apache-2.0
// deft/core/step_trace.hpp: what ran in a step, where and when.
#pragma once
#include <cstdint>
#include <deft/core/config.hpp>
#include <string>
#include <vector>

namespace deft {

/// One node of a step as it ran. Fusion may have joined several nodes into it.
struct trace_event {
  std::string node;        ///< its name
  std::string op;          ///< its operation
  std::string place;       ///< "model.cpp:12", empty if it is unknown
  std::string device;      ///< "/job:worker/replica:0/task:0/cpu:0"
  std::uint32_t lane = 0;  ///< nodes of a task with the same lane ran one after the other
  ///@{
  /// Nanoseconds since 1970 by the clock of the task, so clocks of hosts that differ shift their
  /// tasks against each other. On a GPU, when the node was launched; in a node that waits for
  /// another task, the wait.
  std::int64_t begin = 0, end = 0;
  ///@}
};

/// The nodes of one run on all of its tasks:
///
///     step_trace t;
///     s.run(run_options{.trace = &t}, loss);
///     write_chrome_trace("step.json", t);
///
/// A traced run is a little slower, and calls each kernel by itself.
struct step_trace {
  std::vector<trace_event> events;  ///< in no particular order
};

}  // namespace deft
