// SPDX-License-Identifier: Apache-2.0
// deft/session/server/server_impl.hpp: the implementation of server: connections and messages.
#pragma once
#include <deft/session/engine.hpp>
#include <deft/session/server/client_sessions.hpp>
#include <deft/session/server/coordination.hpp>
#include <deft/session/server/server.hpp>
#include <deft/session/wire/dispatch.hpp>
#include <deft/session/worker/worker.hpp>
#include <deft/transport/listener.hpp>
#include <map>
#include <mutex>
#include <set>

namespace deft::ext {

class server_impl final : public connection_handler {
 public:
  server_impl(const cluster_spec& cluster, const std::string& job, int task,
              server_options options);
  ~server_impl() override;

  void admit(const peer_info& caller) override;
  void on_open(const std::shared_ptr<connection>& c) override;
  void on_message(const std::shared_ptr<connection>& from, message&& m) override;
  bool wait_until_heard(const std::function<bool()>& heard,
                        std::chrono::microseconds unseen) override;
  void on_close(const std::shared_ptr<connection>& c, const error* why) override;

  /// An engine for a session of this process, without a socket. Throws unavailable once stopped,
  /// cancelled once interrupted.
  std::shared_ptr<engine> make_engine(const session_options& options);
  void interrupt();
  void stop(std::chrono::nanoseconds linger = {});

  /// Throws permission_denied for a message of that kind, about a session, that the peer of `from`
  /// may not send.
  void check_sender(const connection& from, const wire::message_rule& rule, std::uint64_t session);

  deft::ext::coordination& coordination() { return *coordination_; }
  const cluster_spec& cluster() const { return worker_->cluster(); }
  const device_name& name() const { return task_->name(); }
  const std::string& address() const { return listener_->address(); }

 private:
  struct requests;  // the table of message handlers

  void check_is_only_one(const peer_info& caller) const;
  void say_goodbye(deadline until);

  // From masters and workers.
  void on_register_part(const wire::caller& from, wire::register_part&& m);
  void on_run_part(const wire::caller& from, wire::run_part&& m);
  void on_tensors(const wire::caller& from, wire::tensors&& m);
  void on_cancel_step(const wire::caller& from, wire::cancel_step&& m);
  void on_resolve_step(const wire::caller& from, wire::resolve_step&& m);
  void on_drop_part(const wire::caller& from, wire::drop_part&& m);
  void on_drop_session(const wire::caller& from, wire::drop_session&& m);
  void on_devices(const wire::caller& from, wire::devices&& m);
  void on_reset(const wire::caller& from, wire::reset&& m);
  // From clients.
  void on_open_session(const wire::caller& from, wire::open_session&& m);
  void on_make_plan(const wire::caller& from, wire::make_plan&& m);
  void on_describe_plan(const wire::caller& from, wire::describe_plan&& m);
  void on_run_plan(const wire::caller& from, wire::run_plan&& m);
  void on_cancel_run(const wire::caller& from, wire::cancel_run&& m);
  void on_resolve_run(const wire::caller& from, wire::resolve_run&& m);
  void on_drop_plan(const wire::caller& from, wire::drop_plan&& m);
  void on_cluster_devices(const wire::caller& from, wire::cluster_devices&& m);
  template <class Request, class Work>
  void when_known(const wire::caller& from, Request&& m, Work work);
  void on_reset_cluster(const wire::caller& from, wire::reset_cluster&& m);
  void on_close_session(const wire::caller& from, wire::close_session&& m);
  // From other tasks of a job.
  void on_wait_signal(const wire::caller& from, wire::wait_signal&& m);
  void on_set_signal(const wire::caller& from, wire::set_signal&& m);
  void on_done(const wire::caller& from, wire::done&& m);

  std::shared_ptr<task_runtime> task_;
  std::shared_ptr<worker> worker_;
  std::unique_ptr<deft::ext::coordination> coordination_;
  client_sessions sessions_;
  /// A task that is connected to this one.
  struct live_task {
    std::uint64_t incarnation = 0;
    std::map<const connection*, std::uint64_t> connections;  ///< with the worker's numbers for them
  };
  std::mutex guard_;
  std::condition_variable changed_;  ///< when connections_ changes
  std::set<std::shared_ptr<connection>> connections_;
  std::map<std::string, live_task> tasks_;
  std::map<std::string, std::uint64_t> incarnations_;  ///< of the cluster's tasks, 0: not yet known
  std::vector<std::weak_ptr<engine>> engines_;         ///< of sessions of this process
  bool interrupted_ = false;
  std::atomic<bool> stopped_{false};
  std::unique_ptr<listener> listener_;  ///< declared last, as its threads use all of the above
};

}  // namespace deft::ext
