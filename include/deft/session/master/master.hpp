// SPDX-License-Identifier: Apache-2.0
// deft/session/master/master.hpp: makes plans for the tasks of a cluster, and runs steps on them.
#pragma once
#include <deft/session/engine.hpp>
#include <deft/session/threads/countdown.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <functional>
#include <memory>

namespace deft::ext {

class worker;

/// Takes a plan, or the error that there is none for.
using plan_callback =
    std::function<void(std::shared_ptr<const error> failure, std::shared_ptr<ready_plan>)>;

/// Limit for the threads of one kernel that a session or task asks for.
inline constexpr int most_intra_op_threads = 1'024;

/// The engine of sessions whose master is a task of this process. A server, which has no thread for
/// each request, uses the functions with `then`: they call it, once, instead of waiting for other
/// tasks, perhaps on the thread that reads the channels. They do not if they throw, and may not if
/// the session is closed first.
class master_engine : public engine {
 public:
  /// Returns true if planning `g`, or listing the devices if `g` is null, would not wait for other
  /// tasks. Otherwise returns false, and calls `then` once it would not, with null, or with the
  /// error that they would throw.
  virtual bool when_known(const graph_def* g, const plan_limits& limits, failure_callback then) = 0;
  using engine::make_plan;
  virtual void make_plan(flat_graph flat, const plan_limits& limits, plan_callback then) = 0;
  using engine::fate_of;
  virtual void fate_of(std::uint64_t step, std::chrono::steady_clock::time_point until,
                       std::function<void(step_fate)> then) = 0;
  using engine::reset;
  virtual void reset(const std::string& container, failure_callback then) = 0;
};

/// Makes the engine of a session on task `self`. If `cluster` is null, this task runs everything.
/// The engine keeps the task alive, not the other way round. Throws failed_precondition in a forked
/// process.
std::shared_ptr<master_engine> make_master(std::shared_ptr<task_runtime> self,
                                           std::shared_ptr<worker> cluster,
                                           session_options options);

}  // namespace deft::ext
