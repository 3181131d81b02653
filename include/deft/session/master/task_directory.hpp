// SPDX-License-Identifier: Apache-2.0
// deft/session/master/task_directory.hpp: the tasks that a session uses, their links and devices.
#pragma once
#include <deft/session/engine.hpp>
#include <deft/session/threads/awaited.hpp>
#include <deft/session/threads/countdown.hpp>
#include <deft/session/worker/worker.hpp>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

namespace deft::ext {

using links_callback = std::function<void(std::vector<std::shared_ptr<channel>>,
                                          std::shared_ptr<const error> failure)>;

/// What a step that has failed may have updated.
struct step_updates {
  std::vector<placement> tasks = {};  ///< know how it ended there; one may be this task
  std::optional<step_fate> known =
      {};  ///< how it ended elsewhere; empty: nothing was to be updated
};

/// What a master and its plans know of the tasks of a session. Thread-safe.
class task_directory final : public session_events,
                             public std::enable_shared_from_this<task_directory> {
 public:
  /// `cluster`: null if the session uses this task only.
  task_directory(std::shared_ptr<task_runtime> self, std::shared_ptr<worker> cluster,
                 session_options options);

  task_runtime& self() const { return *self_; }
  placement self_name() const { return self_name_; }
  /// Null if the session uses this task only.
  const std::shared_ptr<worker>& cluster() const { return cluster_; }
  const session_options& options() const { return options_; }
  /// The number by which workers know the session.
  std::uint64_t session() const { return session_; }
  std::uint64_t next_step() { return ++steps_; }
  /// The number of a step that draws random numbers: see draw_counter.
  std::uint64_t next_draw() { return ++draws_; }
  std::uint64_t draws() const { return draws_; }
  /// Begins a step on several tasks: sets its number, and the number below which all steps on
  /// several tasks have ended. From then on `s` is told of events until end_step.
  void begin_step(std::weak_ptr<session_events> s, std::uint64_t& number,
                  std::uint64_t& ended_below);
  void end_step(std::uint64_t number);
  /// A step has failed that may have updated variables.
  void note_failure(std::uint64_t number, step_updates updates);
  /// Stops such a step, and calls `then` with how it ended; unknown if its tasks do not say so
  /// until `until`, and for all but the last most_failures. Calls it at once if no task is to be
  /// asked.
  void fate_of(std::uint64_t number, deadline until, std::function<void(step_fate)> then);
  static constexpr std::size_t most_failures = 1'024;
  std::uint64_t next_handle() { return ++handles_; }

  /// Returns false if it was closed before.
  bool close() { return closing_.request_stop(); }
  bool closed() const { return closing_.stop_requested(); }
  /// The deadline for tasks to come up, connect_timeout from now.
  deadline patience() const { return deadline_in(options_.connect_timeout); }
  std::stop_token closing() const { return closing_.get_token(); }
  /// Throws failed_precondition if the session is closed, unavailable if it is because this task
  /// was stopped.
  void check_open() const;

  /// Calls `then` with the channel to a task, as task_links::when_linked does. Tries for
  /// connect_timeout, or less (task_links::reconnect_time) if the task was connected before. The
  /// error is aborted if it has restarted since the session began, unavailable, or
  /// deadline_exceeded after `until`; it names the task. If the session is closed first, `then` may
  /// never be called.
  void when_linked(placement task, deadline until, link_callback then);
  /// As when_linked, for all of `tasks`: their channels in the same order, or the first error.
  void when_linked(const std::vector<placement>& tasks, deadline until, links_callback then);
  /// Connects to those of `tasks` whose devices are not known yet, all within the same deadline,
  /// and asks each for its devices. Throws with the names of all missing tasks: unavailable after
  /// connect_timeout, deadline_exceeded if the deadline of `limits` passes first; cancelled if
  /// `limits` are cancelled or the session is closed.
  void learn(const std::vector<placement>& tasks, const plan_limits& limits);
  /// Whether learn would return at once.
  bool knows(const std::vector<placement>& tasks) const;
  /// As learn, but calls `then`, with null or the error, instead of waiting. Does not call it if
  /// the session is closed first.
  void when_learned(const std::vector<placement>& tasks, const plan_limits& limits,
                    failure_callback then);
  /// The devices of `tasks`, for each of which knows() is true.
  std::vector<device_info> devices_of(const std::vector<placement>& tasks) const;
  /// From now on parts are registered by `link`. Returns whether others were by another channel:
  /// then the task may know that it has lost the session.
  bool note_registration(placement task, const std::shared_ptr<channel>& link);
  /// It is not known whether the parts that were registered last have arrived.
  void doubt_registration(placement task);
  struct task_call {
    std::shared_ptr<channel> by;
    message m;
  };
  /// Makes the calls, and calls `then` once all are answered, with null or the first error that was
  /// answered, or with deadline_exceeded after `until`, or connect_timeout if that is shorter,
  /// naming the tasks that did not answer.
  void when_answered(std::vector<task_call> calls, deadline until, failure_callback then);
  /// Waits, on the channels, for the value that `start` gives to the function `(failure, value)`
  /// that it is called with. Throws the failure; unavailable or cancelled once this task is
  /// stopped, the session closed or `limits` cancelled; and deadline_exceeded if `start` does not
  /// keep to the deadline of `limits`.
  /// Without a cluster `start` has to give it at once.
  template <class Value = no_value, class Start>
  Value await(const plan_limits& limits, Start start) {
    const auto value = std::make_shared<awaited<Value>>();
    start([value, w = cluster_](std::shared_ptr<const error> failure, Value v = {}) {
      value->provide(w ? &w->channels() : nullptr, std::move(failure), std::move(v));
    });
    if (!cluster_) return std::move(value->get());
    channel_group& h = cluster_->channels();
    const std::stop_callback wake(limits.cancel, [&h] { h.notify(); });
    // When the time is over, other threads say what is missing; they get a second for that.
    h.wait_until(
        [&] { return value->over() || cluster_->stopped() || closed() || limits.cancelled(); },
        later(limits.until, std::chrono::seconds(1)));
    if (!value->over() || cluster_->stopped()) throw ended_error(limits);
    return std::move(value->get());
  }
  /// The incarnations of the tasks that the session has connected to, or that this task was
  /// connected to when the session was made.
  std::map<placement, std::uint64_t> incarnations() const;

  void on_link_lost(const wire::link_lost& l) override;
  void on_channel_lost() override;
  void warn_of_long_runs() override;

 private:
  class learning;
  class answers;
  class outcome_queries;
  /// Why nothing is waited for any more.
  error ended_error(const plan_limits& limits) const;
  std::vector<std::shared_ptr<session_events>> steps() const;
  std::vector<placement> unknown_of(const std::vector<placement>& tasks) const;
  std::uint64_t known_incarnation(placement task) const;
  void note_incarnation(placement task, std::uint64_t incarnation);

  const std::shared_ptr<task_runtime> self_;
  const placement self_name_;
  const std::shared_ptr<worker> cluster_;
  session_options options_;
  const std::uint64_t session_;
  std::atomic<std::uint64_t> steps_, draws_, handles_{0};
  std::stop_source closing_;
  struct closes {
    task_directory* session;
    void operator()() const { session->close(); }
  };
  /// Once the task is stopped, nothing ends what its steps wait for.
  std::optional<std::stop_callback<closes>> ends_with_task_;
  mutable std::mutex guard_;
  std::map<std::uint64_t, std::weak_ptr<session_events>> under_way_;  ///< steps, by number
  std::deque<std::pair<std::uint64_t, step_updates>> failures_;
  std::map<placement, std::uint64_t> incarnations_;
  std::map<placement, std::weak_ptr<channel>> registered_by_;
  std::map<placement, std::vector<device_info>> devices_;
};

}  // namespace deft::ext
