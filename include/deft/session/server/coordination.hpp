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

namespace deft {

/// Signals, which a task has reached or has not, and which of the workers are done. A server's own:
/// `server::coordination()`. Thread-safe.
class coordination {
 public:
  /// `away`: how long a worker may have no connection before it counts as done.
  coordination(std::shared_ptr<worker> self, std::chrono::nanoseconds away)
      : worker_(std::move(self)), away_(away) {}

  /// Marks `name` as reached on this task; whoever waits for it goes on. Throws resource_exhausted
  /// if the task has too many.
  void signal(const std::string& name);
  /// Likewise on another task. Throws deadline_exceeded or unavailable, naming it.
  void signal(const device_name& task, const std::string& name, std::chrono::nanoseconds timeout);
  /// Waits until `task` has been signalled `name`. Throws deadline_exceeded naming both.
  void wait(const device_name& task, const std::string& name, std::chrono::nanoseconds timeout);
  /// How many calls of others wait for a signal of this task.
  std::size_t waiting() const;

  /// Tells the parameter servers that this task needs them no more.
  void done();
  /// On a parameter server, until every worker was seen and is done; on others until stopped.
  void join();
  /// Ends all waiting.
  void stop();

  // What comes from other tasks.
  void on_open(const connection& c);
  void on_close(const std::shared_ptr<connection>& c);
  void on_wait(const wire::caller& from, wire::wait_signal&& m);
  void on_signal(const wire::caller& from, wire::set_signal&& m);
  void on_done(const wire::caller& from, wire::done&& m);

 private:
  /// What is known of a worker that uses this task.
  struct user_state {
    bool done = false;
    int connections = 0;
    std::chrono::steady_clock::time_point lost{};
  };
  void check_member(const connection& c) const;
  bool is_worker(const std::string& name) const;
  bool all_workers_done(std::chrono::steady_clock::time_point& look_again);

  const std::shared_ptr<worker> worker_;
  const std::chrono::nanoseconds away_;
  mutable std::mutex guard_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::map<std::string, user_state> users_;
  std::set<std::string> signals_;
  std::multimap<std::string, wire::caller> waiting_;
};

}  // namespace deft
