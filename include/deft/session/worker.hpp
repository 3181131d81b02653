// SPDX-License-Identifier: Apache-2.0
// deft/session/worker.hpp: a task's side of distributed steps: parts, running steps, and the links
// to the other tasks.
#pragma once
#include <deft/session/cluster.hpp>
#include <deft/session/local_plan.hpp>
#include <deft/session/task_runtime.hpp>
#include <deft/transport/hub.hpp>
#include <deft/transport/listener.hpp>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>

namespace deft {

class running_step;

/// How a part of a step ended.
struct step_outcome {
  std::unique_ptr<executable::frame> frame;  ///< holds the fetched values; null if it failed
  std::shared_ptr<frame_pool> pool;
  std::shared_ptr<const error> failure;
};
using step_callback = std::function<void(step_outcome)>;

/// Parts that masters registered here, and the steps that run them. Sessions never see each other.
class worker {
 public:
  worker(std::shared_ptr<task_runtime> task, cluster_spec cluster, process_identity self);
  ~worker();

  task_runtime& task() { return *task_; }
  const cluster_spec& cluster() const { return cluster_; }
  deft::hub& hub() { return hub_; }

  /// The channel to a task, connected now if it is not yet.
  /// Throws deadline_exceeded naming the task, unavailable, or what the handshake refused.
  std::shared_ptr<channel> link(const device_name& task, deadline until);

  /// Keeps a part under `session` and `handle` until dropped. An error is told to whoever runs it.
  void register_part(std::uint64_t session, std::uint64_t handle, plan::part p, const void* owner);
  void drop_part(std::uint64_t session, std::uint64_t handle);
  void drop_session(std::uint64_t session);
  /// Everything of a connection that has ended.
  void drop_owner(const void* owner);

  /// Runs a part's step on this thread, as far as it comes; `done` is called once, by whichever
  /// thread ends it. `feeds` must stay until then.
  void run_part(std::uint64_t session, std::uint64_t step, std::uint64_t handle,
                std::vector<feed_ref> feeds, step_callback done);
  /// A value for a step, which may not have begun yet.
  void deliver(std::uint64_t session, std::uint64_t step, std::uint64_t key, any_array value);
  void cancel(std::uint64_t session, std::uint64_t step);

 private:
  friend class running_step;
  struct session_entry;
  struct peer_link {
    std::mutex guard;
    std::shared_ptr<deft::channel> channel;
  };

  std::shared_ptr<session_entry> find(std::uint64_t session, bool make);
  void ended(std::uint64_t session, std::uint64_t step);

  std::shared_ptr<task_runtime> task_;
  cluster_spec cluster_;
  deft::hub hub_;
  std::mutex guard_;
  std::unordered_map<std::uint64_t, std::shared_ptr<session_entry>> sessions_;
  std::mutex links_guard_;
  std::map<const device_name*, std::shared_ptr<peer_link>> links_;
};

}  // namespace deft
