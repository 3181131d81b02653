// SPDX-License-Identifier: Apache-2.0
// deft/session/server/client_sessions.hpp: the sessions of clients whose master this task is.
#pragma once
#include <atomic>
#include <deft/session/master/master.hpp>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

namespace deft::ext {

class connection;

/// A client's plan, and whether it is quick: it runs on this task only, waits for nothing, and its
/// last two runs were so short that changing threads is not worth it. The thread that reads
/// messages runs quick plans.
class client_plan {
 public:
  explicit client_plan(std::shared_ptr<ready_plan> plan) : plan_(std::move(plan)) {}

  std::size_t fetches() const { return plan_->fetches(); }
  /// Whether it runs on this task only.
  bool is_local() const { return plan_->is_local(); }
  /// Whether a run with these feeds is quick: one with more bytes than were measured may take
  /// longer.
  bool is_quick(std::span<const any_array> feeds) const;
  /// See ready_plan::start.
  void start(std::vector<any_array> feeds, const run_options& options, run_callback done);

 private:
  void measure(std::span<const any_array> feeds, const run_options& options,
               const run_callback& done);

  const std::shared_ptr<ready_plan> plan_;
  std::atomic<int> slowness_{2};  ///< how many quick runs it takes to count as quick
  std::atomic<std::size_t> measured_bytes_{0};
};

/// A client's session, its plans, its runs that can be cancelled, and its last ones that failed.
/// Thread-safe.
class client_session {
 public:
  static constexpr std::size_t most_plans = 65'536, most_failed = 1'024;

  client_session(std::shared_ptr<master_engine> master, const connection* owner)
      : master_(std::move(master)), owner_(owner) {}

  master_engine& master() { return *master_; }
  /// The connection that opened it; the session ends with it.
  const connection* owner() const { return owner_; }

  /// Keeps a plan and returns its number. Throws resource_exhausted if there are too many.
  std::uint64_t keep(std::shared_ptr<ready_plan> plan);
  /// The plan of that number. Throws not_found.
  std::shared_ptr<client_plan> plan(std::uint64_t number);
  void drop(std::uint64_t number);

  /// Begins the run that call `id` asks for; the token is requested once cancel_run is called.
  std::stop_token begin_run(std::uint64_t id);
  void cancel_run(std::uint64_t id);
  void end_run(std::uint64_t id);

  /// Notes that the run that call `id` asked for has failed, as this step of the master.
  void note_failure(std::uint64_t id, std::uint64_t step);
  /// The step that was noted; 0 if there is none, or it has been forgotten.
  std::uint64_t failed_step(std::uint64_t id);

 private:
  const std::shared_ptr<master_engine> master_;
  const connection* const owner_;
  std::mutex guard_;
  std::unordered_map<std::uint64_t, std::shared_ptr<client_plan>> plans_;
  std::uint64_t last_plan_ = 0;
  std::map<std::uint64_t, std::stop_source> running_;           ///< by call
  std::deque<std::pair<std::uint64_t, std::uint64_t>> failed_;  ///< call and step, the last ones
};

/// The client sessions of a server. Thread-safe.
class client_sessions {
 public:
  static constexpr std::size_t most_of_connection = 1'024;

  /// Adds a session and returns its id. Throws unavailable after close(task), resource_exhausted if
  /// its owner has too many sessions.
  std::uint64_t open(std::shared_ptr<client_session> s);
  /// The session of that id. Throws not_found, or unavailable after close(task).
  std::shared_ptr<client_session> find(std::uint64_t id);
  /// Whether `from` opened the session of that id; true if there is none.
  bool may_be_owner(std::uint64_t id, const connection* from);
  void close(std::uint64_t id);
  /// Closes the sessions that `owner` opened.
  void close_all_of(const connection* owner);
  /// Refuses new sessions, as `task` is stopping. Returns the sessions; the caller closes their
  /// masters.
  std::vector<std::shared_ptr<client_session>> close(const std::string& task);

 private:
  void check_open() const;

  std::mutex guard_;
  std::string stopping_;  ///< the name of the task, once it is stopping
  std::map<std::uint64_t, std::shared_ptr<client_session>> all_;
};

}  // namespace deft::ext
