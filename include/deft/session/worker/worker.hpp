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
#include <unordered_map>

namespace deft {

/// What the master of a session hears from the worker of its process.
class session_events {
 public:
  virtual ~session_events() = default;
  /// A task has lost its connection to another, and what it sent to it may not have arrived.
  virtual void on_link_lost(const wire::link_lost& l) = 0;
  /// This process has lost its connection to a task.
  virtual void on_channel_lost() = 0;
  /// Now and then while runs are under way that no thread waits for.
  virtual void look_at_runs() = 0;
};

/// Parts that masters registered here, and the steps that run them. Sessions never see each other.
class worker : public std::enable_shared_from_this<worker> {
 public:
  /// Bytes that may wait for steps that have not begun.
  static constexpr std::size_t most_early_bytes = std::size_t{4} << 30;
  /// Of a session that another process has: parts; steps that have begun or for which values came.
  static constexpr std::size_t most_parts = 65'536, most_steps = 65'536;
  static constexpr std::size_t most_sessions = 4'096;  ///< of a connection
  /// Sessions whose connection was lost and whose steps are remembered.
  static constexpr std::size_t most_journals = 256;

  /// `self`: as others are to know it.
  static std::shared_ptr<worker> make(std::shared_ptr<task_runtime> task, cluster_spec cluster,
                                      process_identity self);
  worker(std::shared_ptr<task_runtime> task, cluster_spec cluster, process_identity self);

  task_runtime& task() { return *task_; }
  /// To the other tasks.
  task_links& links() { return links_; }
  const cluster_spec& cluster() const { return links_.cluster(); }
  channel_group& channels() { return links_.channels(); }
  /// For what may take long.
  background_work& background() { return background_; }

  /// Keeps a part under `session` and `handle` until dropped; an error is told to whoever runs it.
  /// `owner`: the connection it came by; null for a master of this process.
  void register_part(std::uint64_t session, std::uint64_t handle, plan::part p,
                     const incarnation_list& peers, const std::shared_ptr<connection>& owner);
  void drop_part(std::uint64_t session, std::uint64_t handle);
  void drop_session(std::uint64_t session);
  /// A connection has ended, and with it what came by it. Steps that wait for values of `peer`
  /// fail.
  void connection_lost(const void* owner, const peer_info& peer);

  /// Runs a part's step as far as it comes, on this thread if that is short; `done` is called once,
  /// by whichever thread ends it. `feeds` must stay until then. `from`: the connection by which the
  /// master asks; null for one of this process. Steps below `ended_below` are over: those that are
  /// still here are stopped.
  void run_part(std::uint64_t session, std::uint64_t step, std::uint64_t handle,
                std::uint64_t ended_below, std::vector<feed_ref> feeds,
                std::shared_ptr<connection> from, step_callback done);
  /// Values for a step, which may not have begun yet. `from`: the connection; null for one that a
  /// master of this process made, whose session is known.
  void deliver(wire::tensors&& values, const void* from);
  void cancel(std::uint64_t session, std::uint64_t step);
  /// Of the last step_journal::most steps that ended, and those that are under way.
  wire::fate fate_of(std::uint64_t session, std::uint64_t step);

  /// The master of `session`, which is of this process, until the session is dropped.
  void add_master(std::uint64_t session, std::weak_ptr<session_events> master);

  /// Something is under way that no thread waits for: while this lives, and a little longer, one
  /// of the background reads what comes for it.
  class unattended {
   public:
    explicit unattended(const std::shared_ptr<worker>& w);
    ~unattended();
    unattended(const unattended&) = delete;

   private:
    const std::shared_ptr<worker> worker_;
  };

  /// Fails every step as unavailable, and ends every link. Nothing can be run afterwards.
  void stop();
  bool stopped() const { return stopped_; }
  /// What runs say that come too late.
  error stopped_error() const;
  /// What waits of this process say once it is interrupted.
  error interrupted_error() const;

 private:
  friend class running_step;
  struct session_entry;

  std::shared_ptr<session_entry> find(std::uint64_t session);
  /// Throws resource_exhausted if `from`, a connection, has too many.
  std::shared_ptr<session_entry> find_or_make(std::uint64_t session, const void* from);
  void check_part(const plan::part& p) const;
  void forget(std::uint64_t session, const std::shared_ptr<const error>& why,
              bool keep_journal = false);
  void ended(std::uint64_t session, std::uint64_t step, wire::fate f);
  /// To the masters of all sessions, or of one whose steps up to `step` are concerned.
  void tell_of_loss(placement task, const error& why);
  void tell_of_loss(std::uint64_t session, std::uint64_t step, placement task, const error& why);
  std::vector<std::shared_ptr<session_events>> masters() const;
  void read_for_others();

  std::shared_ptr<task_runtime> task_;
  background_work background_;
  task_links links_;
  std::atomic<bool> stopped_{false};
  std::atomic<std::size_t> early_bytes_{0};
  std::atomic<int> unattended_{0};
  std::atomic<bool> reading_{false}, read_lately_{false};
  mutable std::mutex guard_;
  std::unordered_map<std::uint64_t, std::shared_ptr<session_entry>> sessions_;
  std::unordered_map<const void*, std::size_t> sessions_of_;  ///< by the connection that made them
  std::map<std::uint64_t, std::weak_ptr<session_events>> masters_;
  std::deque<std::pair<std::uint64_t, step_journal>> journals_;  ///< of sessions that are not here
  std::deque<std::uint64_t> dropped_;  ///< sessions: values that still come for them are dropped
};

}  // namespace deft
