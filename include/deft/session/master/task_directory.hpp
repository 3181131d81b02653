// SPDX-License-Identifier: Apache-2.0
// deft/session/master/task_directory.hpp: the tasks that a session uses: their links and devices.
#pragma once
#include <deft/session/engine.hpp>
#include <deft/session/worker/worker.hpp>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <vector>

namespace deft {

/// What a master and its plans share.
class task_directory final : public session_events,
                             public std::enable_shared_from_this<task_directory> {
 public:
  /// `cluster`: null for a task alone.
  task_directory(std::shared_ptr<task_runtime> self, std::shared_ptr<worker> cluster,
                 session_options options);

  task_runtime& self() const { return *self_; }
  placement self_name() const { return self_name_; }
  /// Null for a task alone.
  const std::shared_ptr<worker>& cluster() const { return cluster_; }
  const session_options& options() const { return options_; }
  /// As workers know it.
  std::uint64_t session() const { return session_; }
  std::uint64_t next_step() { return ++steps_; }
  /// A step through several tasks begins; `s` is told what happens meanwhile. Its number, and the
  /// one below which all steps have ended, but for those of this task alone.
  std::pair<std::uint64_t, std::uint64_t> begin_step(std::weak_ptr<session_events> s);
  void end_step(std::uint64_t number);
  std::uint64_t next_handle() { return ++handles_; }

  /// False if it was closed before.
  bool close() { return closing_.request_stop(); }
  bool closed() const { return closing_.stop_requested(); }
  /// Until when tasks may be waited for.
  deadline patience() const { return deadline_in(options_.connect_timeout); }
  std::stop_token closing() const { return closing_.get_token(); }
  /// Throws unavailable if the task was stopped, which closes the sessions too;
  /// failed_precondition if the session is closed.
  void check_open() const;

  /// The channel to a task: one that was there a moment ago is not waited for long.
  /// Throws aborted if it has restarted since the session began; all errors name it.
  std::shared_ptr<channel> link(placement task, deadline until = no_deadline);
  /// As link, without waiting: calls `then` at once or later; see task_links::when_linked.
  void when_linked(placement task, deadline until, link_callback then);
  /// Connects to those of `tasks` that it has not talked to yet, all against one deadline, and asks
  /// each for its devices, once. Throws with the names of all that are missing: unavailable after
  /// connect_timeout, deadline_exceeded where the limits end before; cancelled if asked to.
  void learn(const std::vector<placement>& tasks, const plan_limits& limits);
  /// Whether learn would return at once.
  bool knows(const std::vector<placement>& tasks) const;
  /// Calls `then` with what learn throws, or null, once it is known; never if the session is closed
  /// before.
  void when_learned(const std::vector<placement>& tasks, const plan_limits& limits,
                    std::function<void(std::shared_ptr<const error>)> then);
  /// Those of `tasks`, which are known.
  std::vector<device_info> devices_of(const std::vector<placement>& tasks) const;
  /// Calls `tasks`, none of them this one and all known, at the same time, and waits for all
  /// answers as long as tasks may be waited for. If one fails, throws its error once all have
  /// answered.
  void call_all(const std::vector<placement>& tasks, const message& m);
  /// Of the tasks that it has talked to, or that this task had a link to when the session was made.
  std::map<placement, std::uint64_t> incarnations() const;

  void on_link_lost(const wire::link_lost& l) override;
  void on_channel_lost() override;
  void look_at_runs() override;

 private:
  class learning;
  std::vector<std::shared_ptr<session_events>> steps() const;
  std::vector<placement> unknown_of(const std::vector<placement>& tasks) const;
  std::uint64_t known_incarnation(placement task) const;
  void note_incarnation(placement task, std::uint64_t incarnation);

  const std::shared_ptr<task_runtime> self_;
  const placement self_name_;
  const std::shared_ptr<worker> cluster_;
  session_options options_;
  const std::uint64_t session_;
  std::atomic<std::uint64_t> steps_{0}, handles_{0};
  std::stop_source closing_;
  mutable std::mutex guard_;
  std::map<std::uint64_t, std::weak_ptr<session_events>> under_way_;  ///< steps
  std::map<placement, std::uint64_t> incarnations_;
  std::map<placement, std::vector<device_info>> devices_;
};

}  // namespace deft
