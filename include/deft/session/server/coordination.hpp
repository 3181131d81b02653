// SPDX-License-Identifier: Apache-2.0
// deft/session/server/coordination.hpp: what the tasks of a job tell each other beside steps.
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

/// What a task knows of another one of its cluster, or of itself.
struct task_state {
  std::string name;        ///< "/job:worker/replica:0/task:1"
  bool connected = false;  ///< to this task, by a connection of either end
  bool done = false;       ///< it has said so, and has not come back since
};

/// Signals, which a task has reached or has not, and which tasks are connected or done. A server's
/// own: `server::coordination()`. Thread-safe.
class coordination {
 public:
  /// `away`: how long a worker may have no connection before it counts as done.
  coordination(std::shared_ptr<worker> self, std::chrono::nanoseconds away);

  /// Marks `name` as reached on this task; whoever waits for it goes on. Throws resource_exhausted
  /// if the task has too many.
  void signal(const std::string& name);
  /// Likewise on another task. Throws deadline_exceeded or unavailable, naming it.
  void signal(const device_name& task, const std::string& name, std::chrono::nanoseconds timeout);
  /// Waits until `task` has been signalled `name`. Throws deadline_exceeded naming both, cancelled
  /// once this task is interrupted.
  void wait(const device_name& task, const std::string& name, std::chrono::nanoseconds timeout);
  /// How many calls of others wait for a signal of this task.
  std::size_t waiting() const;

  /// Every task of the cluster, in its order, this one included: it is connected, and done once it
  /// has called done(). Never waits. Workers say to parameter servers that they are done.
  std::vector<task_state> members() const;

  /// Tells the parameter servers that this task needs them no more: all at the same time, and waits
  /// for their answers.
  void done(std::chrono::nanoseconds timeout = std::chrono::seconds(2));
  /// On a parameter server, until every worker was seen and is done; on others until stopped or
  /// interrupted, as on a parameter server too.
  void join();
  /// Ends all waiting of this process, as cancelled: `join`, and `wait` and `signal` from now on.
  void interrupt();
  /// Ends all waiting, also that of others.
  void stop();

  // What comes from other tasks.
  void on_open(const connection& c);
  void on_close(const std::shared_ptr<connection>& c);
  void on_wait(const wire::caller& from, wire::wait_signal&& m);
  void on_signal(const wire::caller& from, wire::set_signal&& m);
  void on_done(const wire::caller& from, wire::done&& m);

 private:
  /// What is known of a task of the cluster.
  struct member {
    bool seen = false, done = false;
    int connections = 0;  ///< that it has made
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
};

}  // namespace deft
