// SPDX-License-Identifier: Apache-2.0
// deft/session/engine.hpp: makes plans and runs them, in this process or on another task.
#pragma once
#include <chrono>
#include <deft/execute/frame_pool.hpp>
#include <deft/graph/graph_def.hpp>
#include <deft/plan/passes.hpp>
#include <deft/session/options.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace deft::ext {

/// The values of a run. Owns them.
class step_results {
 public:
  step_results() = default;
  explicit step_results(std::vector<any_array> values) : values_(std::move(values)) {}
  /// Values in a frame, which the destructor returns to its pool. Keeps the pool alive: the plan
  /// that made it may be dropped from its cache before the values are taken.
  step_results(std::unique_ptr<executable::frame> f, std::shared_ptr<frame_pool> pool)
      : pool_(std::move(pool)), frame_(std::move(f)) {}
  step_results(step_results&&) noexcept = default;
  step_results& operator=(step_results&&) = delete;
  ~step_results() {
    if (frame_) pool_->give_back(std::move(frame_));
  }

  /// The value of fetch `i`; the reference is valid as long as this object.
  const any_array& peek(std::size_t i) { return frame_ ? frame_->peek(i) : values_[i]; }
  /// Moves the value of fetch `i` out.
  any_array take(std::size_t i) { return frame_ ? frame_->take(i) : std::move(values_[i]); }

 private:
  std::vector<any_array> values_;
  std::shared_ptr<frame_pool> pool_;  ///< declared before the frame, which refers to it
  std::unique_ptr<executable::frame> frame_;
};

/// How a run ended.
struct run_outcome {
  std::optional<step_results> results;   ///< empty if it failed
  std::shared_ptr<const error> failure;  ///< the first error of the step; null if there was none
  std::uint64_t step = 0;                ///< the number of the step, once it has begun
};
using run_callback = std::function<void(run_outcome)>;

/// A plan, ready to run any number of times, from any thread.
class ready_plan {
 public:
  virtual ~ready_plan() = default;
  /// Runs one step. `feeds` are in the order that the plan was made with. Throws the first error of
  /// the step.
  virtual step_results run(std::span<const feed_ref> feeds, const run_options& options) = 0;
  /// The same without waiting for other tasks or for what its nodes wait for, if a master that is a
  /// task of a cluster made the plan. `done` is called once, on the thread that ends the run.
  /// `feeds` must stay alive until then, and must not be borrowed.
  virtual void start(std::span<const feed_ref> feeds, const run_options& options,
                     const run_callback& done);
  /// The number of fetches, including operations.
  virtual std::size_t fetches() const = 0;
  /// Whether it runs on this task only.
  virtual bool is_local() const { return false; }
  /// Whether nodes may wait for something outside the step, such as a barrier.
  virtual bool waits() const { return false; }
};

/// How long planning may wait for tasks.
struct plan_limits {
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  std::stop_token cancel = {};  ///< a stop request ends the wait

  bool cancelled() const { return cancel.stop_requested(); }
};

/// The result of the passes for a graph, for explain.
struct plan_description {
  graph_def placed;  ///< the nodes of the pruned graph, each with its device
  std::vector<plan::pass_size> passes;
  std::vector<plan::unfused_edge> apart;  ///< pairs of nodes that fusion did not join
};

/// Makes plans and runs them: a master in this process, or a connection to one.
class engine {
 public:
  virtual ~engine() = default;
  /// Throws with the names of all tasks that cannot be reached: unavailable after connect_timeout,
  /// deadline_exceeded if the deadline of `limits` passes first, cancelled if `limits` are
  /// cancelled.
  virtual std::shared_ptr<ready_plan> make_plan(flat_graph flat, const plan_limits& limits) = 0;
  /// What make_plan would make of `flat`, without keeping it. Throws as make_plan does.
  virtual plan_description describe(flat_graph flat, const plan_limits& limits) = 0;
  virtual std::vector<device_info> devices() = 0;
  /// Stops a step that has failed, and waits at most until `until` to learn how it ended.
  virtual step_fate fate_of(std::uint64_t step, std::chrono::steady_clock::time_point until) = 0;
  /// How many of its steps have drawn random numbers, with session_options.first_step; none if that
  /// is known to another process only.
  virtual std::optional<std::uint64_t> draws() const { return {}; }
  /// Cancels the runs under way; later ones throw failed_precondition.
  virtual void close() = 0;
  /// Deletes the variables of a container on all tasks.
  virtual void reset(const std::string& container) = 0;
};

/// `e`, of a step that was stopped or lost while it may have updated variables.
inline error perhaps_applied(const error& e) {
  return e.with_message(e.message() + "; the step may have been applied");
}

}  // namespace deft::ext
