// SPDX-License-Identifier: Apache-2.0
// deft/session/server_impl.hpp: what a server does with the messages that come.
#pragma once
#include <condition_variable>
#include <deft/session/engine.hpp>
#include <deft/session/server.hpp>
#include <deft/session/worker.hpp>
#include <map>
#include <set>

namespace deft {

class server_impl final : public connection_handler {
 public:
  server_impl(const cluster_spec& cluster, const std::string& job, int task,
              server_options options);
  ~server_impl() override;

  void on_open(const std::shared_ptr<connection>& c) override;
  void on_message(const std::shared_ptr<connection>& from, message&& m) override;
  void on_close(const std::shared_ptr<connection>& c, const error* why) override;

  /// An engine for a session of this process: no socket between.
  std::shared_ptr<engine> make_engine(const session_options& options);
  /// The same on the server of this process that listens at `address`; null if there is none.
  static std::shared_ptr<engine> make_engine_at(const std::string& address,
                                                const session_options& options);

  void join();
  void stop();
  void done();
  void signal(const std::string& name);
  /// How many calls of others wait for a signal of this task.
  std::size_t waiting() const;
  /// Marks `name` on another task.
  void signal_at(const device_name& task, const std::string& name,
                 std::chrono::nanoseconds timeout);
  void wait_for_signal(const device_name& of, const std::string& name,
                       std::chrono::nanoseconds timeout);

  const cluster_spec& cluster() const { return worker_->cluster(); }
  const device_name& name() const { return task_->name(); }
  const std::string& address() const { return listener_->address(); }

 private:
  /// A client's session on this task as its master.
  struct client_session {
    std::shared_ptr<engine> master;
    const void* owner = nullptr;
    std::mutex guard;
    std::unordered_map<std::uint64_t, std::shared_ptr<planned>> plans;
    std::uint64_t next_plan = 0;
    std::map<std::uint64_t, std::shared_ptr<std::atomic<bool>>> running;  ///< to cancel, by call
  };
  /// What is known of a worker that uses this task.
  struct user_state {
    bool done = false;
    int connections = 0;
    std::chrono::steady_clock::time_point lost{};
  };

  void handle(const std::shared_ptr<connection>& from, message& m);
  void handle_worker(const std::shared_ptr<connection>& from, message& m);
  bool handle_client(const std::shared_ptr<connection>& from, message& m);
  void handle_signals(const std::shared_ptr<connection>& from, message& m);
  void run_part(const std::shared_ptr<connection>& from, message& m);
  void run_plan(const std::shared_ptr<connection>& from, message& m);
  std::shared_ptr<client_session> session_of(std::uint64_t id);
  bool is_worker(const std::string& name) const;
  bool all_workers_done(std::chrono::steady_clock::time_point& look_again);

  server_options options_;
  std::shared_ptr<task_runtime> task_;
  std::shared_ptr<worker> worker_;

  mutable std::mutex guard_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::map<std::uint64_t, std::shared_ptr<client_session>> sessions_;
  std::map<std::string, user_state> users_;
  std::size_t connections_ = 0;
  std::set<std::string> signals_;
  std::multimap<std::string, std::pair<std::weak_ptr<connection>, std::uint64_t>> waiting_;

  std::unique_ptr<listener> listener_;  ///< last: its threads use all of the above
};

}  // namespace deft
