// SPDX-License-Identifier: Apache-2.0
// deft/session/server/coordination.hpp: signals between tasks, and which tasks are connected or
// done.
#pragma once
#include <condition_variable>
#include <deft/session/wire/dispatch.hpp>
#include <deft/session/worker/worker.hpp>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace deft {

/// What a task knows of a task of its cluster.
struct task_state {
  std::string name;        ///< "/job:worker/replica:0/task:1"
  bool connected = false;  ///< to this task, in either direction
  bool done = false;       ///< it said so, and has not reconnected since
};

/// Signals, which are set on a task and which others wait for, and the state of the cluster's
/// tasks. Each server has one: `server::coordination()`. Thread-safe.
///
///     self.server().coordination().signal("loaded");                            // on worker 0
///     self.server().coordination().wait(task_name("worker", 0), "loaded", 60s);  // on others
class coordination {
 public:
  /// `away`: how long a worker may be disconnected before it counts as done.
  coordination(std::shared_ptr<worker> self, std::chrono::nanoseconds away);

  /// Limit for the signals that are set on a task.
  static constexpr std::size_t most_signals = 65'536;
  /// Sets signal `name` on this task, until it is cleared, and wakes all that wait for it. Throws
  /// invalid_argument for a name above 256 bytes, resource_exhausted if the task has too many
  /// signals.
  void signal(const std::string& name);
  /// Clears signal `name` on this task, if it is set: later waits wait until it is set again.
  void clear_signal(const std::string& name);
  /// Sets signal `name` on `task`. Throws as above, and deadline_exceeded or unavailable naming the
  /// task.
  void signal(const device_name& task, const std::string& name, std::chrono::nanoseconds timeout);
  /// Waits until signal `name` is set on `task`. Throws deadline_exceeded naming both after
  /// `timeout`, unavailable if the task is lost or stopped, cancelled once this task is
  /// interrupted.
  void wait(const device_name& task, const std::string& name, std::chrono::nanoseconds timeout);
  /// The number of waits for signals of this task.
  std::size_t waiting() const;

  /// Every task of the cluster in its order, including this one, which is connected, and done once
  /// it has called done(). Does not wait. Only parameter servers learn which workers are done.
  std::vector<task_state> members() const;

  /// Tells all parameter servers at once that this task no longer needs them, and waits for their
  /// answers, at most `timeout`; what could not be told is logged.
  void done(std::chrono::nanoseconds timeout = std::chrono::seconds(2));
  /// Waits until the task is stopped or interrupted, or, on a parameter server, until every worker
  /// has connected and is done.
  void join();
  /// Ends the waits of this process: join returns, wait and signal throw cancelled from now on.
  void interrupt();
  /// Ends the waits of this process and those of others for its signals.
  void stop();

  // Events and messages from other tasks.
  void on_open(const connection& c);
  void on_close(const std::shared_ptr<connection>& c);
  void on_wait(const wire::caller& from, wire::wait_signal&& m);
  void on_signal(const wire::caller& from, wire::set_signal&& m);
  void on_done(const wire::caller& from, wire::done&& m);

 private:
  /// What is known of a task of the cluster.
  struct member {
    bool seen = false, done = false, answered = false;  ///< answered: its message that it is done
    int connections = 0;                                ///< that it has to this task
    std::chrono::steady_clock::time_point lost{};
  };
  void check_member(const connection& c) const;
  bool all_workers_done(std::chrono::steady_clock::time_point& look_again);

  const std::shared_ptr<worker> worker_;
  const std::chrono::nanoseconds away_;
  mutable std::mutex guard_;
  std::condition_variable changed_;
  bool stopped_ = false, interrupted_ = false;
  std::map<std::string, member> members_;  ///< all tasks, by name
  std::set<std::string> signals_;
  std::multimap<std::string, wire::caller> waiting_;
  std::multimap<std::string, bool*> waiting_here_;  ///< set to true with the signal
};

}  // namespace deft
