// SPDX-License-Identifier: Apache-2.0
// deft/session/master/task_directory.hpp: the tasks that a session uses: their links and devices.
#pragma once
#include <deft/session/engine.hpp>
#include <deft/session/worker/worker.hpp>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <vector>

namespace deft {

/// What a master and its plans share.
class task_directory {
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
  /// A step through several tasks, which is under way as long as this lives.
  class step {
   public:
    explicit step(task_directory& d);
    ~step();
    step(const step&) = delete;

    std::uint64_t number() const { return *at_; }
    /// All steps with lower numbers had ended when it began, but for those of this task alone.
    std::uint64_t ended_below() const { return ended_below_; }

   private:
    task_directory& directory_;
    std::set<std::uint64_t>::iterator at_;
    std::uint64_t ended_below_;
  };
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
  /// Connects to those of `tasks` that it has not talked to yet, all against one deadline. Throws
  /// with the names of all that are missing: unavailable after connect_timeout, deadline_exceeded
  /// where the limits end before; cancelled if asked to.
  void reach(const std::vector<placement>& tasks, const plan_limits& limits);
  /// Calls `tasks`, none of them this one, at the same time, and waits for all answers as long as
  /// tasks may be waited for. If one fails, throws its error once all have answered.
  std::vector<message> call_all(const std::vector<placement>& tasks, const message& m,
                                const plan_limits& limits);
  /// Reaches `tasks`, and returns their devices; asks each task once.
  std::vector<device_info> devices_of(const std::vector<placement>& tasks,
                                      const plan_limits& limits);
  /// Of the tasks that it has talked to, or that this task had a link to when the session was made.
  std::map<placement, std::uint64_t> incarnations() const;

 private:
  const std::shared_ptr<task_runtime> self_;
  const placement self_name_;
  const std::shared_ptr<worker> cluster_;
  session_options options_;
  const std::uint64_t session_;
  std::atomic<std::uint64_t> steps_{0}, handles_{0};
  std::stop_source closing_;
  mutable std::mutex guard_;
  std::set<std::uint64_t> under_way_;  ///< steps
  std::map<placement, std::uint64_t> incarnations_;
  std::map<placement, std::vector<device_info>> devices_;
};

}  // namespace deft
