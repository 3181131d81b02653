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

namespace deft::ext {

/// What a task knows of a task of its cluster.
struct task_state {
  std::string name;        ///< "/job:worker/replica:0/task:1"
  bool connected = false;  ///< to this task, in either direction
  bool done = false;       ///< its process said so, and no other has connected since
};

/// Signals, which are set on a task and which others wait for, and the state of the cluster's
/// tasks. Each server has one: `server::coordination()`. Thread-safe.
///
///     self.server().coordination().signal("loaded");                            // on worker 0
///     self.server().coordination().wait(task_name("worker", 0), "loaded", 60s);  // on others
class coordination {
 public:
  /// `away`: how long join waits for a worker that was lost.
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
  /// it has called done(). Does not wait.
  std::vector<task_state> members() const;

  /// Tells all other tasks that are not done, at once, that this one no longer needs them and ends,
  /// and waits for their answers, at most `timeout`; which parameter servers could not be told is
  /// logged. From then on other tasks do not wait for this one to come up.
  void done(std::chrono::nanoseconds timeout = std::chrono::seconds(2));
  /// See server::join. Logs which workers have been missing for 10 s.
  void join();
  /// Asks a task that serves to end, as it was told to: join returns once the workers that are
  /// connected are done, or after `patience`. Returns false if this task does not serve.
  bool end_join(std::chrono::nanoseconds patience);
  /// Ends the waits of this process: join returns, wait and signal throw cancelled from now on.
  void interrupt();
  /// Ends the waits of this process and those of others for its signals.
  void stop();

  /// Whether this task has called done().
  bool is_done() const;
  /// Whether the peer is a task of the cluster.
  bool is_member(const connection& c) const;

  // Events, and messages of tasks of the cluster.
  void on_open(const connection& c);
  void on_close(const std::shared_ptr<connection>& c, const error* why);
  void on_wait(const wire::caller& from, wire::wait_signal&& m);
  void on_signal(const wire::caller& from, wire::set_signal&& m);
  void on_done(const wire::caller& from, wire::done&& m);

 private:
  using clock = std::chrono::steady_clock;
  /// What is known of a task of the cluster.
  struct member {
    bool seen = false, done = false, answered = false;  ///< answered: its message that it is done
    bool serves = false;                                ///< until the others are done
    bool told = false;                                  ///< that this task serves
    bool missed = false;                                ///< it was logged that it is missing
    std::uint64_t incarnation = 0;
    int connections = 0;  ///< that it has to this task
    clock::time_point lost{};
    std::string why_lost = {};
  };
  class done_report;
  // With the lock held, which some release meanwhile:
  bool job_is_done() const;
  bool needed() const;
  bool is_missing(const member& m) const;
  void check_lost() const;
  clock::time_point next_look() const;
  void log_missing(std::unique_lock<std::mutex>& lock);
  void tell_that_it_serves(std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<worker> worker_;
  const std::chrono::nanoseconds away_;
  const bool is_ps_;
  std::vector<std::string> awaited_;  ///< the other workers
  mutable std::mutex guard_;
  std::condition_variable changed_;
  bool stopped_ = false, interrupted_ = false;
  int joining_ = 0;                                      ///< threads in join
  clock::time_point joined_ = clock::time_point::max();  ///< when the first one was
  deadline ends_at_ = no_deadline;                       ///< once it was asked to end
  std::map<std::string, member> members_;                ///< all tasks, by name
  std::set<std::string> signals_;
  std::multimap<std::string, wire::caller> waiting_;
  std::multimap<std::string, bool*> waiting_here_;          ///< set to true with the signal
  std::vector<std::shared_ptr<done_report>> done_reports_;  ///< that have begun
};

}  // namespace deft::ext
