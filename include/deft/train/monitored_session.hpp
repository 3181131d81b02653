// SPDX-License-Identifier: Apache-2.0
// deft/train/monitored_session.hpp: a session that starts, watches, saves and ends a training job.
#pragma once
#include <chrono>
#include <deft/session/launch/task.hpp>
#include <deft/session/session.hpp>
#include <deft/train/hook.hpp>
#include <deft/train/saver.hpp>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

namespace deft {

/// Options of a monitored_session.
struct monitored_options {
  /// Where the chief saves all variables, as "model-<global step>", and from where it restores them
  /// when it starts or a task that held some was lost; every server needs `--file_root` for it.
  /// Empty: no checkpoints.
  std::string checkpoint_dir = {};
  /// Called in this order, before the one that saves checkpoints. None may be null.
  std::vector<hook_ref> hooks = {};
  session_options session = {};  ///< of the underlying session
  /// How long workers wait for variables to be initialized, and for lost tasks to come back. Tasks
  /// that have not come yet when the session begins are waited for as session.connect_timeout says.
  std::chrono::nanoseconds start_timeout = std::chrono::minutes(2);
  /// A checkpoint is saved at the start and the end, and when the global step has grown by so much,
  std::int64_t checkpoint_steps = 0;  ///< 0: however much
  /// or this time has passed since the last one. 0: however long.
  std::chrono::nanoseconds checkpoint_interval = std::chrono::minutes(10);
  int max_to_keep = 5;          ///< checkpoints
  double keep_every_hours = 0;  ///< one of so many hours is kept beside those; 0: none
};

/// A session for training, on every worker of a cluster or in a single process.
///
/// At the start the chief restores the newest checkpoint, or initializes all variables, unless all
/// have values already, as when only the chief was restarted. A worker initializes the variables
/// that live on its own task, if the chief does not restore them, and waits until all have values.
///
/// When a task is lost, runs wait until it is back and are repeated; the session logs the loss
/// once, and how training goes on. If variables were lost, the chief first restores or initializes
/// all of them anew, and no step of any worker comes between: a step that meets a variable that is
/// being restored waits and is repeated, as if a task had been lost.
/// Otherwise a run that has updated variables is not repeated: what it fetches is computed again,
/// without its updates; if it has made only some of them, as when the task was lost that others
/// waited for, the rest is left out, which is logged. If it fetches what only the update itself
/// yields, such as `assign(…).value()`, it throws data_loss: the step was applied, but that value
/// was lost.
///
/// In a task of a cluster random numbers go on beyond those that were drawn: where the session was,
/// or, in a process that was started again, far from where it can have been. A single process that
/// goes on from a checkpoint draws what it would have drawn without the interruption.
///
/// Hooks run around every step. Ctrl-C and SIGTERM ask the session to stop, as request_stop does;
/// a second signal ends the process.
class monitored_session : public detail::run_forms<monitored_session> {
 public:
  /// Throws deadline_exceeded, which names the chief and the variables, if variables are not
  /// initialized within start_timeout; what saver::restore throws.
  explicit monitored_session(task& self, monitored_options options = {},
                             ext::source_location w = ext::here());
  /// As close(), unless an exception ends the session's block: as in TensorFlow, so that no hook
  /// saves a broken state. What close() would throw is logged as an error, and task_main returns 1.
  ~monitored_session();
  monitored_session(const monitored_session&) = delete;

  /// Ends training in order: calls every hook's end, one of which saves the last checkpoint. Throws
  /// the first error among theirs, when all were called. Later runs throw failed_precondition;
  /// session() can still be used.
  void close();

  // run() as a session has it; hooks also receive the values that they fetch.

  /// Whether a hook, a signal or request_stop has asked to stop.
  bool should_stop() const { return context_.stop_requested(); }
  /// Makes should_stop() true; a run under way is not cancelled. May be called from any thread.
  void request_stop() { context_.request_stop(); }

  /// The underlying session, which runs without hooks and does not recover.
  deft::session& session() { return session_; }
  /// As session::device_of.
  std::string device_of(const any_tensor& t) { return session_.device_of(t); }

 private:
  friend class detail::run_forms<monitored_session>;
  ext::step_results run_request(std::span<const ext::output> fetches,
                                std::span<const ext::output> targets,
                                std::span<const ext::feed_ref> feeds, const run_options& options,
                                ext::source_location w);
  /// Calls a hook's end, again after a recovery.
  void end(hook& h);
  run_options while_starting(std::chrono::steady_clock::time_point until) const;
  /// The variables that have no value.
  std::vector<any_variable> without_values(std::chrono::steady_clock::time_point until);
  std::vector<any_variable> without_values(const std::vector<std::int64_t>& generations) const;
  /// Gives variables their values, or waits until they have them. `lost`: some were, though a task
  /// that has restarted may have given them first values again.
  void give_values(std::chrono::steady_clock::time_point until, bool lost);
  /// As the chief: restores or initializes all variables.
  void give_all(std::chrono::steady_clock::time_point until);
  /// As the chief, where an update was applied in part and nothing is there to restore: goes on.
  void keep_torn(std::chrono::steady_clock::time_point until);
  /// Waits until all variables have values, those of one restoration.
  void await_values(std::chrono::steady_clock::time_point until);
  /// Of each variable, what changes when it is restored; 0 while it has no value. Then the same of
  /// each barrier of synchronous replicas, whose variables may be of two rounds while it is 0.
  std::vector<std::int64_t> generations(std::chrono::steady_clock::time_point until);
  /// What to fetch with a run for the global step after it.
  ext::output step_after(std::span<const ext::output> fetches, std::span<const ext::output> fed);
  void make_ready(std::chrono::steady_clock::time_point until);
  /// After a run failed with `why`, which is being handled, makes a new session, once all variables
  /// have values. Returns whether the run, now that or before (`updated`), has changed them; `step`
  /// is its number, 0 if it did not begin. Throws `why` if no task was lost, or with the reason why
  /// that failed.
  bool recover(const error& why, std::uint64_t step, bool updated);
  void make_anew(std::chrono::steady_clock::time_point until, bool lost = false);
  /// What of `fetches` can be computed without updates; the others are empty.
  ext::step_results compute_again(std::span<const ext::output> fetches,
                                  std::span<const ext::output> fed,
                                  std::span<const ext::feed_ref> values, const run_options& options,
                                  ext::source_location w);
  /// Whether all variables still have their values. Waits for lost tasks to come back.
  bool has_kept_values(std::chrono::steady_clock::time_point until);

  int failed_hooks_ = 0;  ///< runs in a row of which a hook has failed
  task& self_;
  ext::source_location location_;  ///< where the program made the session
  monitored_options options_;
  deft::graph graph_;
  std::vector<any_variable> variables_;  ///< of the graph
  std::vector<any_tensor> generations_;  ///< what generations() fetches
  std::vector<std::int64_t> seen_;       ///< the generations when the session was made ready
  std::string given_;                    ///< how variables got their values, for the log
  std::int64_t began_at_ = -1;           ///< global step when it was made ready; -1: unknown
  std::mutex steps_guard_;
  std::vector<std::pair<std::vector<ext::output>, ext::output>>
      steps_after_;     ///< of the last requests
  bool ready_ = false;  ///< once random numbers are where they are to go on
  bool closed_ = false;
  std::size_t ended_ = 0;  ///< of the hooks
  deft::session session_;
  run_context context_{self_, session_, location_};
  std::stop_source asked_to_stop_;  ///< by a signal, which also ends waits for other tasks
  std::shared_ptr<void> on_signal_;
  const int exceptions_ = std::uncaught_exceptions();  ///< in flight when the session was made
};

}  // namespace deft
