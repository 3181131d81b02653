// SPDX-License-Identifier: Apache-2.0
// deft/train/sync_replicas.hpp: one update by the mean of several workers' gradients.
#pragma once
#include <deft/session/session.hpp>
#include <deft/train/hook.hpp>
#include <deft/train/optimizer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace deft {

/// Synchronous training by workers that have a graph and a loop of their own each, as
/// TensorFlow's SyncReplicasOptimizer:
///
///     auto train = sync_replicas(adagrad(0.1), 2, 3).minimize(loss, global_step());
///     monitored_session s(self, {.hooks = {stop_at_step(1000)}});
///     while (!s.should_stop()) s.run(train, …);
///
/// A round: each worker computes gradients and brings them to the variables' tasks. Once there are
/// `replicas_to_aggregate`, their mean is applied once by the given optimizer, the global step
/// grows by 1, and the workers go on. Workers beyond that number are backups: what they bring too
/// late for a round is dropped, and they go on with the next one. So is a gradient that was
/// computed with the variables of an earlier round, by this thread of a worker or another; with
/// variables on several tasks, a step that reads some of them before an update and others after it
/// may count for the later round. What the update reads, such as a rate that follows the global
/// step, is as the round before has left it.
///
/// Rounds know their workers. They wait for one that has not come yet; one that is asked to stop,
/// ends its session or is lost is no longer expected, until it comes back: the others log it, and
/// if they are fewer than `replicas_to_aggregate`, average what they have.
///
/// What else happens once a round, after the update, is written by `after_update`, such as
/// `[&] { return averages.apply(); }`; what a worker runs after its step happens once a worker.
///
/// In a monitored_session the update runs by itself; another session needs replica_updates.
/// Gradients wait in the memory of the variable's task: one of each worker for each variable.
/// Gradients of rows (see optimizer) travel and wait as rows.
class sync_replicas final : public optimizer {
 public:
  /// Throws invalid_argument unless 1 <= replicas_to_aggregate <= total_num_replicas <= 4096.
  template <std::derived_from<optimizer> O>
  sync_replicas(O inner, int replicas_to_aggregate, int total_num_replicas,
                std::function<operation()> after_update = {}, ext::source_location w = ext::here())
      : sync_replicas(std::make_shared<const O>(std::move(inner)), replicas_to_aggregate,
                      total_num_replicas, std::move(after_update), w) {}

 protected:
  operation update(const update_target& v, const any_tensor& gradient) const override {
    return update_by(*inner_, v, gradient);
  }
  operation apply(const std::vector<gradient_of_variable>& gradients,
                  const variable<std::int64_t>* step, ext::source_location w) const override;

 private:
  sync_replicas(std::shared_ptr<const optimizer> inner, int needed, int total,
                std::function<operation()> after_update, ext::source_location w);

  const std::shared_ptr<const optimizer> inner_;
  const int needed_, total_;
  const std::function<operation()> after_update_;
};

/// While it lives, applies the gradients of rounds that are granted to this session, for all
/// sync_replicas of a graph, in threads of its own. Then the session leaves the rounds. Must not
/// outlive the session.
class replica_updates {
 public:
  /// `left`: for each sync_replicas of the graph, the tasks of workers that are known to have left,
  /// for a barrier that has lost its memory.
  explicit replica_updates(session& s, graph g = current_graph(),
                           const std::vector<std::vector<std::string>>& left = {});
  ~replica_updates();
  replica_updates(const replica_updates&) = delete;
  /// Leaves the rounds now, which ends the steps that wait in one, from any thread.
  void leave();

 private:
  class state;
  std::unique_ptr<state> state_;
};

namespace detail {
/// The hook by which a monitored_session applies gradients and logs which workers have left; null
/// if the graph has no sync_replicas. Throws invalid_argument if one of them waits for more
/// replicas than there are workers.
hook_ref replica_hook(const task& self, graph g);
}  // namespace detail

}  // namespace deft
