// SPDX-License-Identifier: Apache-2.0
// deft/train/hook.hpp: what happens around the runs of a monitored session.
#pragma once
#include <atomic>
#include <chrono>
#include <deft/core/step_trace.hpp>
#include <deft/expr/feed.hpp>
#include <deft/expr/tensor.hpp>
#include <deft/graph/graph_def.hpp>
#include <memory>
#include <stop_token>
#include <vector>

namespace deft {

class monitored_session;
class session;
class task;

/// What a hook may ask of its session during a run.
class run_context {
 public:
  /// @cond made by monitored_session
  run_context(const task& self, deft::session& s, ext::source_location w = ext::here())
      : self_(self), session_(s), location_(w) {}
  /// @endcond
  /// The task of this process, which may be the chief, or one of many workers.
  const task& self() const { return self_; }
  /// For what has to be read after the run.
  deft::session& session() { return session_; }
  /// Where the program made the session, for errors of what a hook runs.
  ext::source_location location() const { return location_; }
  /// The same under its former name.
  ext::source_location place() const { return location_; }
  /// Asks the program to stop: monitored_session::should_stop() is true from now on. The run under
  /// way is not cancelled. May be called from any thread.
  void request_stop() { stop_.request_stop(); }
  /// Asks to stop because the variables have no useful values any more: no hook saves them.
  void give_up() {
    given_up_ = true;
    stop_.request_stop();
  }
  /// Whether a hook has given up: hooks that save variables ask this first.
  bool given_up() const { return given_up_; }
  /// Whether a hook, the program or a signal has asked to stop.
  bool stop_requested() const { return stop_.stop_requested(); }
  /// For what waits while a run is under way.
  std::stop_token stop_token() const { return stop_.get_token(); }
  /// For after_run of hooks that have asked for it: the graph's global step after the run, as the
  /// run's own update left it, or a later one.
  std::int64_t global_step() const { return global_step_; }

 private:
  friend class monitored_session;
  const task& self_;
  deft::session& session_;
  ext::source_location location_;
  std::stop_source stop_;
  std::atomic<bool> given_up_{false};
  std::atomic<std::int64_t> global_step_{0};
};

/// What a hook adds to a run.
struct run_arguments {
  std::vector<any_tensor> fetches = {};  ///< whose values after_run receives, in this order
  /// Two hooks, or a hook and the program, must not feed the same tensor.
  std::vector<feed_value> feeds = {};
  /// Asks for run_context::global_step(). The run throws failed_precondition if the graph has none.
  bool global_step = false;
  /// The largest one counts, and that of the run itself, or of the session; 0: no wish.
  std::chrono::nanoseconds timeout{0};
  /// Receives the trace of the run; several hooks may ask for one. Must live until the run ends.
  step_trace* trace = nullptr;
  /// Receives the graph of the run, with the device of each node. Must live until the run ends.
  graph_def* graph = nullptr;
};

/// Adds to the runs of a monitored session and looks at their values.
class hook {
 public:
  virtual ~hook() = default;
  /// Once, before the session is made, while the graph can still be written.
  virtual void begin() {}
  /// When the variables have values: once at the start, and after each recovery.
  virtual void after_create(run_context& context) { static_cast<void>(context); }
  /// Before each run, and again before one that is repeated after a recovery.
  virtual run_arguments before_run(run_context& context) {
    static_cast<void>(context);
    return {};
  }
  /// After each run that did not fail: `values` are those of the fetches of before_run. An error
  /// that says that a task was lost is recovered from, once all hooks have heard of the run; if
  /// that happens in more than three runs in a row, it is thrown.
  virtual void after_run(run_context& context, std::span<const any_array> values) {
    static_cast<void>(context), static_cast<void>(values);
  }
  /// Once, when the session ends in order: not where an exception ends it. An error that says that
  /// a task was lost is recovered from, and it is called again. What else it throws is thrown by
  /// monitored_session::close(), or fails the task: see its destructor.
  virtual void end(run_context& context) { static_cast<void>(context); }
};
/// A hook as sessions take it, of this library or of the program: `stop_at_step(2000)`,
/// `std::make_shared<my_hook>()`.
using hook_ref = std::shared_ptr<hook>;

namespace ext {

/// When stop_at_step stops: one of the two.
struct step_limit {
  std::int64_t last_step = 0;  ///< once the global step is this
  std::int64_t num_steps = 0;  ///< once it has grown by this since the session began
};

}  // namespace ext

/// Asks the session to stop at a global step; at once if it has been reached, as where training
/// goes on from its last checkpoint. The session's constructor throws failed_precondition where the
/// graph has no global step, invalid_argument unless one of the two is above 0.
hook_ref stop_at_step(ext::step_limit limit);
/// The same for a last step: `stop_at_step(2000)`.
hook_ref stop_at_step(std::int64_t last);
/// Stops when `loss` is not a number, with an error in the log, and hooks that come after it save
/// no checkpoint any more; or throws invalid_argument if `fail` is set.
hook_ref stop_on_nan(const any_tensor& loss, bool fail = false);

/// @cond internal
namespace detail {
/// Throws invalid_argument, naming `function`, unless `loss` has numbers.
void expect_numbers(std::string_view function, const any_tensor& loss);
}  // namespace detail
/// @endcond

}  // namespace deft
