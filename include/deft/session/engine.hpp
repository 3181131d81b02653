// SPDX-License-Identifier: Apache-2.0
// deft/session/engine.hpp: what makes plans and runs them, here or on another task.
#pragma once
#include <chrono>
#include <deft/execute/executor.hpp>
#include <deft/graph/graph_def.hpp>
#include <deft/plan/passes.hpp>
#include <deft/session/options.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace deft {

/// The values of a run, until it is destroyed.
class step_results {
 public:
  step_results() = default;
  explicit step_results(std::vector<any_array> values) : values_(std::move(values)) {}
  /// Values in a frame, which goes back to its pool afterwards. The pool is kept: the plan that
  /// made it may be dropped from its cache before the values are taken.
  step_results(std::unique_ptr<executable::frame> f,
               void (*give_back)(void*, std::unique_ptr<executable::frame>),
               std::shared_ptr<void> pool)
      : pool_(std::move(pool)), frame_(std::move(f)), give_back_(give_back) {}
  step_results(step_results&&) noexcept = default;
  step_results& operator=(step_results&&) = delete;
  ~step_results() {
    if (frame_) give_back_(pool_.get(), std::move(frame_));
  }

  /// The value of fetch `i`, valid as long as this.
  const any_array& peek(std::size_t i) { return frame_ ? frame_->peek(i) : values_[i]; }
  any_array take(std::size_t i) { return frame_ ? frame_->take(i) : std::move(values_[i]); }

 private:
  std::vector<any_array> values_;
  std::shared_ptr<void> pool_;  ///< before the frame, which refers to it
  std::unique_ptr<executable::frame> frame_;
  void (*give_back_)(void*, std::unique_ptr<executable::frame>) = nullptr;
};

/// How a run ended.
struct run_outcome {
  std::optional<step_results> results;   ///< none: it failed
  std::shared_ptr<const error> failure;  ///< the step's first error
};
using run_callback = std::function<void(run_outcome)>;

/// A plan, ready to run any number of times, from any thread.
class ready_plan {
 public:
  virtual ~ready_plan() = default;
  /// `feeds` in the order in which the plan was made. Throws the step's first error.
  virtual step_results run(std::span<const feed_ref> feeds, const run_options& options) = 0;
  /// The same, but a master's plan does not wait for other tasks here. `done` is called once, by
  /// whichever thread ends the run; `feeds`, none of them borrowed, must stay until then.
  virtual void start(std::span<const feed_ref> feeds, const run_options& options,
                     const run_callback& done);
  /// Number of fetches, operations included.
  virtual std::size_t fetches() const = 0;
  /// It runs on this task alone.
  virtual bool is_local() const { return false; }
};

/// How long the tasks of a plan may be waited for.
struct plan_limits {
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  std::stop_token cancel = {};  ///< requested: no longer

  bool cancelled() const { return cancel.stop_requested(); }
};

/// What the passes make of a graph.
struct plan_description {
  graph_def placed;  ///< each node of the pruned graph, on its device
  std::vector<plan::pass_size> passes;
  std::vector<plan::kept_apart> apart;  ///< by fusion
};

/// A place to run plans.
class engine {
 public:
  virtual ~engine() = default;
  /// Throws with the names of all tasks that cannot be reached: unavailable after connect_timeout,
  /// deadline_exceeded where `limits` end before.
  virtual std::shared_ptr<ready_plan> make_plan(flat_graph flat, const plan_limits& limits) = 0;
  /// What a plan of it would be; nothing is kept. Throws as make_plan does.
  virtual plan_description describe(flat_graph flat, const plan_limits& limits) = 0;
  /// Whether all is known that planning `g`, or listing devices (null), would wait for; else `then`
  /// is called once it is, with null, or with what they would throw. Only masters know.
  virtual bool when_known(const graph_def* /*g*/, const plan_limits&,
                          std::function<void(std::shared_ptr<const error>)> /*then*/) {
    return true;
  }
  virtual std::vector<device_info> devices() = 0;
  /// Cancels what runs; nothing can be run afterwards.
  virtual void close() = 0;
  /// Forgets the variables of a container on all tasks.
  virtual void reset(const std::string& container) = 0;
};

}  // namespace deft
