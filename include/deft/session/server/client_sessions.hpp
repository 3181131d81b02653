// SPDX-License-Identifier: Apache-2.0
// deft/session/server/client_sessions.hpp: the sessions of clients whose master this task is.
#pragma once
#include <atomic>
#include <deft/session/engine.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

namespace deft {

class connection;

/// A client's plan, and whether it is quick: it runs on this task alone, and its last two runs took
/// no longer than it takes to change threads. Then the thread that reads messages runs it.
class client_plan {
 public:
  explicit client_plan(std::shared_ptr<ready_plan> plan) : plan_(std::move(plan)) {}

  std::size_t fetches() const { return plan_->fetches(); }
  /// It runs on this task alone.
  bool is_local() const { return plan_->is_local(); }
  /// With these feeds: more bytes than were measured may take longer.
  bool is_quick(std::span<const any_array> feeds) const;
  step_results run(std::span<const any_array> feeds, const run_options& options);
  /// See ready_plan::start.
  void start(std::vector<any_array> feeds, const run_options& options, run_callback done);

 private:
  const std::shared_ptr<ready_plan> plan_;
  std::atomic<int> slowness_{2};  ///< runs that have to be quick before it counts as such
  std::atomic<std::size_t> measured_bytes_{0};
};

/// A client's session, its plans, and the runs that may be cancelled. Thread-safe.
class client_session {
 public:
  static constexpr std::size_t most_plans = 65'536;

  client_session(std::shared_ptr<engine> master, const connection* owner)
      : master_(std::move(master)), owner_(owner) {}

  engine& master() { return *master_; }
  /// The connection by which it was opened, and with which it ends.
  const connection* owner() const { return owner_; }

  /// Throws resource_exhausted if there are too many.
  std::uint64_t keep(std::shared_ptr<ready_plan> plan);
  /// Throws not_found.
  std::shared_ptr<client_plan> plan(std::uint64_t number);
  void drop(std::uint64_t number);

  /// What cancels call `id`.
  std::stop_token begin_run(std::uint64_t id);
  void cancel_run(std::uint64_t id);
  void end_run(std::uint64_t id);

 private:
  const std::shared_ptr<engine> master_;
  const connection* const owner_;
  std::mutex guard_;
  std::unordered_map<std::uint64_t, std::shared_ptr<client_plan>> plans_;
  std::uint64_t last_plan_ = 0;
  std::map<std::uint64_t, std::stop_source> running_;  ///< by call
};

/// Those of a server. Thread-safe.
class client_sessions {
 public:
  static constexpr std::size_t most_of_connection = 1'024;

  /// Throws unavailable once they are closed; resource_exhausted if its owner has too many.
  std::uint64_t open(std::shared_ptr<client_session> s);
  /// Throws not_found; unavailable once they are closed.
  std::shared_ptr<client_session> find(std::uint64_t id);
  void close(std::uint64_t id);
  /// Those that `owner` opened.
  void close_all_of(const connection* owner);
  /// No session can be opened any more, as `task` is stopping; returns those that were, whose
  /// masters are to be closed.
  std::vector<std::shared_ptr<client_session>> close(const std::string& task);

 private:
  void check_open() const;

  std::mutex guard_;
  std::string stopping_;  ///< the task, once they are closed
  std::map<std::uint64_t, std::shared_ptr<client_session>> all_;
};

}  // namespace deft
