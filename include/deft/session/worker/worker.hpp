// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/worker.hpp: a task's side of distributed steps: parts, running steps, and the
// links to the other tasks.
#pragma once
#include <atomic>
#include <deft/session/threads/background_work.hpp>
#include <deft/session/worker/running_step.hpp>
#include <deft/session/worker/step_journal.hpp>
#include <deft/session/worker/task_links.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <unordered_map>

namespace deft::ext {

/// Events that the worker of a process reports to the master of a session.
class session_events {
 public:
  virtual ~session_events() = default;
  /// A task has lost its connection to another; values that it sent may not have arrived.
  virtual void on_link_lost(const wire::link_lost& l) = 0;
  /// This process has lost its connection to a task.
  virtual void on_channel_lost() = 0;
  /// Called from time to time while runs are under way that no thread waits for.
  virtual void warn_of_long_runs() = 0;
};

/// The parts that masters have registered on this task, and the steps that run them. Sessions are
/// isolated from each other. Thread-safe.
class worker : public std::enable_shared_from_this<worker> {
 public:
  /// Limit in bytes for values that wait for steps of a session that have not begun.
  static constexpr std::size_t most_early_bytes = std::size_t{4} << 30;
  /// Limits for a session of another process: parts; steps that have begun or received values.
  static constexpr std::size_t most_parts = 65'536, most_steps = 65'536;
  static constexpr std::size_t most_sessions = 4'096;  ///< per connection
  /// Limits for sessions whose connection was lost and whose steps are remembered; and for unknown
  /// sessions whose steps one connection may ask about.
  static constexpr std::size_t most_journals = 4'096, most_unheard = 64;

  /// `self`: how this task introduces itself to others.
  static std::shared_ptr<worker> make(std::shared_ptr<task_runtime> task, cluster_spec cluster,
                                      process_identity self);
  worker(std::shared_ptr<task_runtime> task, cluster_spec cluster, process_identity self);

  task_runtime& task() { return *task_; }
  /// The channels to the other tasks.
  task_links& links() { return links_; }
  const cluster_spec& cluster() const { return links_.cluster(); }
  channel_group& channels() { return links_.channels(); }
  /// Threads for work that may take long.
  background_work& background() { return background_; }

  /// Keeps a part under `session` and `handle` until it is dropped. Errors are reported when the
  /// part is run. `owner`: the connection that it came by; null for a master of this process.
  void register_part(std::uint64_t session, std::uint64_t handle, plan::part p,
                     const incarnation_list& peers, const std::shared_ptr<connection>& owner);
  void drop_part(std::uint64_t session, std::uint64_t handle);
  void drop_session(std::uint64_t session);
  /// Whether the peer of `from` is the master of the session, which registered its parts; true if
  /// nobody did. A task is so on each of its connections, a client on the one that it used.
  bool may_be_master(std::uint64_t session, const connection& from);
  /// Counts the connections of other tasks: a number for one that has just been accepted.
  std::uint64_t next_connection() { return ++connections_; }
  std::uint64_t last_connection() const { return connections_; }
  /// A connection has ended: drops the sessions that came by it, and fails steps that wait for
  /// values of `peer`, but not those that began after `newer`, another connection of that peer, was
  /// accepted (0: there is none).
  void connection_lost(const void* owner, const peer_info& peer, std::uint64_t newer = 0);

  /// Runs a step of a part until it waits or ends, on this thread if that is short. `done` is
  /// called once, on the thread that ends the step; `feeds` must stay alive until then. `from`: the
  /// connection by which the master asks; null for a master of this process. The feeds of `order`
  /// are not used.
  void run_part(const wire::run_part& order, std::vector<feed_ref> feeds,
                std::shared_ptr<connection> from, step_callback done);
  /// Takes values for a step, which may not have begun yet. `from`: the connection that they came
  /// by; null for a channel of a master of this process, whose session is known.
  void deliver(wire::tensors&& values, const void* from);
  void cancel(std::uint64_t session, std::uint64_t step);
  /// Stops a step, and calls `then` with how it ended, once it has. One that has not begun never
  /// will. Remembers the last step_journal::most steps of a session. `from`: the connection by
  /// which the master asks; null for a master of this process.
  void resolve_outcome(std::uint64_t session, std::uint64_t step, const void* from,
                       step_journal::callback then);

  /// Registers a master of this process for the events of `session`, until that is dropped.
  void add_master(std::uint64_t session, std::weak_ptr<session_events> master);

  /// A run that no thread waits for: while this lives, and a little longer, a background thread
  /// reads the messages for it.
  class background_reads {
   public:
    explicit background_reads(const std::shared_ptr<worker>& w);
    ~background_reads();
    background_reads(const background_reads&) = delete;

   private:
    const std::shared_ptr<worker> worker_;
  };

  /// Fails every step as unavailable, and closes every link. Later runs fail likewise.
  void stop();
  bool stopped() const { return stopped_; }
  /// For those who wait in this process; stopped() is true before.
  std::stop_token stopping() const { return stopping_.get_token(); }
  /// The error of runs on a stopped task.
  error stopped_error() const;
  /// The error of waits in this process once it is interrupted.
  error interrupted_error() const;

 private:
  friend class running_step;
  struct session_entry;
  /// Who registered the parts of a session.
  struct session_master {
    const void* connection = nullptr;  ///< null: a master of this process
    std::string name = {};
    std::uint64_t incarnation = 0;
  };
  struct lost_session {
    std::uint64_t id;
    std::shared_ptr<step_journal> journal;
    std::optional<session_master> master = {};
  };

  std::shared_ptr<session_entry> find(std::uint64_t session);
  /// Throws resource_exhausted if the connection `from` has too many sessions.
  std::shared_ptr<session_entry> find_or_make(std::uint64_t session, const void* from);
  void check_part(const plan::part& p) const;
  void forget(std::uint64_t session, const std::shared_ptr<const error>& why,
              bool keeps_journal = false);
  void keep_journal(lost_session s);
  void ended(std::uint64_t session, std::uint64_t step);
  /// Tells the masters of all sessions, or that of one, that values sent to `task` may be lost, for
  /// steps up to `step`.
  void tell_of_loss(placement task, const error& why);
  void tell_of_loss(std::uint64_t session, std::uint64_t step, placement task, const error& why);
  std::vector<std::shared_ptr<session_events>> masters() const;
  void read_for_others();

  std::shared_ptr<task_runtime> task_;
  background_work background_;
  task_links links_;
  std::atomic<std::uint64_t> connections_{0};
  std::atomic<bool> stopped_{false};
  std::stop_source stopping_;
  std::atomic<int> background_reads_{0};
  std::atomic<bool> reading_{false}, read_lately_{false};
  mutable std::mutex guard_;
  std::unordered_map<std::uint64_t, std::shared_ptr<session_entry>> sessions_;
  std::unordered_map<const void*, std::size_t>
      sessions_of_;  ///< number, by the connection that made them
  std::map<std::uint64_t, std::weak_ptr<session_events>> masters_;
  std::deque<lost_session> journals_;
  bool journals_dropped_ = false;  ///< there were too many
  std::unordered_map<const void*, std::size_t>
      unknown_step_queries_;           ///< number, by the connection that asks
  std::deque<std::uint64_t> dropped_;  ///< sessions; values that still arrive for them are dropped
};

}  // namespace deft::ext
