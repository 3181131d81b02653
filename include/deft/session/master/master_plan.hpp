// SPDX-License-Identifier: Apache-2.0
// deft/session/master/master_plan.hpp: a master's plan: registers its parts on their tasks, and
// runs its steps.
#pragma once
#include <deft/execute/frame_pool.hpp>
#include <deft/session/master/task_directory.hpp>
#include <deft/session/wire/messages.hpp>
#include <optional>

namespace deft::ext {

/// A plan whose parts are registered on their tasks. A plan with one part, on this task, runs
/// without messages.
class master_plan final : public ready_plan, public std::enable_shared_from_this<master_plan> {
 public:
  master_plan(std::shared_ptr<task_directory> tasks, std::vector<plan::part> parts,
              std::size_t fetches);
  ~master_plan() override;
  /// Called once, after construction. Calls `then` once the tasks have their parts, or soon will,
  /// or with deadline_exceeded after `until`. If it fails, the destructor drops the parts that were
  /// registered.
  void register_parts(deadline until, failure_callback then);

  step_results run(std::span<const feed_ref> feeds, const run_options& options) override;
  void start(std::span<const feed_ref> feeds, const run_options& options,
             const run_callback& done) override;
  std::size_t fetches() const override { return fetches_; }
  bool is_local() const override { return others_.empty(); }
  bool waits() const override { return waits_; }

 private:
  struct task_part {
    placement task = nullptr;
    wire::register_part registration;  ///< as it was sent
    std::vector<std::uint32_t> feeds, fetches;
    /// The channel on which the part was registered. The task's links own it while it is connected,
    /// so an idle plan does not keep the socket of a lost connection.
    std::weak_ptr<channel> link;
    bool updates = false;  ///< whether it updates variables
  };
  class distributed_step;
  class local_step;
  class background_step;

  std::vector<task_directory::task_call> register_parts_by(
      const std::vector<std::shared_ptr<channel>>& links);
  std::shared_ptr<channel> standing_link(const task_part& r);
  void relink(task_part& r, deadline until, link_callback then);
  void check_run(std::span<const feed_ref> feeds) const;
  deadline deadline_of(const run_options& options) const;
  step_results run_here(std::span<const feed_ref> feeds, const run_options& options);
  void start_here(std::span<const feed_ref> feeds, const run_options& options,
                  const run_callback& done);

  const std::shared_ptr<task_directory> tasks_;
  const std::stop_token closing_;
  const std::size_t fetches_;
  std::size_t feeds_ = 0;  ///< one more than the highest feed number
  bool waits_ = false;
  bool draws_ = false;               ///< other random numbers in each step
  bool feeds_in_order_ = true;       ///< the own part takes all feeds, in their order
  std::shared_ptr<frame_pool> own_;  ///< if there are no other parts
  task_part own_part_;               ///< task is null if this task has no part
  std::mutex guard_;                 ///< guards the links of others_
  std::vector<task_part> others_;
};

}  // namespace deft::ext
