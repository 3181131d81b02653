// SPDX-License-Identifier: Apache-2.0
// deft/session/server/server.ipp: starts and stops a server; umbrella of server/.
#pragma once
#include <deft/core/log.hpp>
#include <deft/core/thread.hpp>
#include <deft/session/cluster/own_address.hpp>
#include <deft/session/master/master.hpp>
#include <deft/session/server/client_sessions.ipp>
#include <deft/session/server/coordination.ipp>
#include <deft/session/server/joining.ipp>
#include <deft/session/server/requests.ipp>
#include <deft/session/server/server_impl.hpp>
#include <deft/session/server/server_table.ipp>

namespace deft {

namespace ext {

server_impl::server_impl(const cluster_spec& cluster, const std::string& job, int task,
                         server_options options) {
  check_not_forked();
  device_name name = task_name(job, task);
  listen_options l;
  l.address = cluster.address(job, task);
  l.fd = options.listen_fd;
  task_ =
      std::make_shared<task_runtime>(name, settings_of(options), file_roots(options.file_roots));
  l.self = {to_string(name),           task_->incarnation(),
            cluster.entries(),         options.credentials.or_of_environment(),
            options.heartbeat_timeout, options.window};
  // The system may choose the port here; the worker's copy of the cluster has that port.
  if (l.fd < 0 && l.address.ends_with(":0")) l.fd = listen_socket(l.address);
  check_addresses(cluster, job, task, l.fd >= 0 ? address_of_socket(l.fd) : l.address);
  cluster_spec known = cluster;
  if (l.fd >= 0) known.set_address(job, task, address_of_socket(l.fd));
  worker_ = worker::make(task_, std::move(known), l.self);
  coordination_ = std::make_unique<deft::ext::coordination>(worker_, options.away);
  listener_ = std::make_unique<listener>(std::move(l), *this);
  add_server(listener_->address(), *this);
  add_server(worker_->cluster().address(job, task), *this);
}

server_impl::~server_impl() { stop(); }

void server_impl::interrupt() {
  std::vector<std::weak_ptr<engine>> engines;
  {
    std::lock_guard lock(guard_);
    interrupted_ = true;
    engines.swap(engines_);
  }
  for (const auto& e : engines)
    if (auto here = e.lock()) here->close();
  coordination_->interrupt();
}

/// Tells all connected processes that the task was stopped, so that they do not report it as lost.
void server_impl::say_goodbye(deadline until) {
  const error why =
      coordination_->is_done() ? task_links::ended_error(task_->name()) : worker_->stopped_error();
  message goodbye(message_kind::refused);
  out_archive(goodbye.meta) & why.code() & why.message();
  std::unique_lock lock(guard_);
  const auto told = connections_;
  lock.unlock();
  for (const auto& c : told) try {
      c->send(goodbye);
    } catch (const error&) {
      // The connection was lost.
    }
  // Messages that arrive meanwhile are answered; closing at once would reset the connections.
  lock.lock();
  changed_.wait_until(lock, until, [&] { return connections_.empty(); });
}

void server_impl::stop(std::chrono::nanoseconds linger) {
  remove_server(*this);
  if (stopped_.exchange(true)) return;
  const auto sessions = sessions_.close(to_string(task_->name()));
  coordination_->stop();
  // The worker comes first: it tells waiting steps why they end.
  worker_->stop();
  for (const auto& s : sessions) s->master().close();
  say_goodbye(deadline_in(linger));
  listener_->stop();
  // Background work may still use the devices' memory.
  worker_->background().wait();
}

/// Throws unavailable if another process is connected as the same task.
void server_impl::check_is_only_one(const peer_info& caller) const {
  const auto at = tasks_.find(caller.name);
  if (at != tasks_.end() && at->second.incarnation != caller.incarnation)
    fail(errc::unavailable, "another process is connected to ", task_->name(), " as ", caller.name);
}

void server_impl::admit(const peer_info& caller) {
  if (stopped_) throw worker_->stopped_error();
  if (caller.incarnation == 0) {
    if (caller.name.starts_with("/job:"))
      fail(errc::invalid_argument, caller.name, " does not say which process of that task it is");
    return;
  }
  std::lock_guard lock(guard_);
  check_is_only_one(caller);
}

void server_impl::on_open(const std::shared_ptr<connection>& c) {
  bool replaces = false;
  {
    std::lock_guard lock(guard_);
    if (const peer_info& caller = c->peer(); caller.incarnation != 0) {
      check_is_only_one(caller);  // two may have been admitted at the same time
      live_task& t = tasks_[caller.name];
      t.incarnation = caller.incarnation;
      t.connections.emplace(c.get(), worker_->next_connection());
      if (incarnations_.empty())
        for (const auto& n : worker_->cluster().task_names()) incarnations_[to_string(n)] = 0;
      if (const auto of = incarnations_.find(caller.name); of != incarnations_.end()) {
        const std::uint64_t last = std::exchange(of->second, caller.incarnation);
        replaces = last != 0 && last != caller.incarnation;
      }
    }
    connections_.insert(c);
  }
  if (replaces)
    logging::info(task_->name(), ": ", c->peer(), " takes the place of a former process");
  coordination_->on_open(*c);
}

void server_impl::on_close(const std::shared_ptr<connection>& c, const error* why) {
  if (why) logging::info(task_->name(), ": ", c->peer(), " is gone: ", why->what());
  bool idle = false;
  std::uint64_t newer = 0;
  {
    std::lock_guard lock(guard_);
    connections_.erase(c);
    idle = connections_.empty();
    if (const auto at = tasks_.find(c->peer().name);
        c->peer().incarnation != 0 && at != tasks_.end()) {
      auto& all = at->second.connections;
      const std::uint64_t ended = all.extract(c.get()).mapped();
      for (const auto& [other, number] : all)
        if (number > ended) newer = std::max(newer, number);
      if (all.empty()) tasks_.erase(at);
    }
  }
  worker_->connection_lost(c.get(), c->peer(), newer);
  changed_.notify_all();
  coordination_->on_close(c, why);
  sessions_.close_all_of(c.get());
  // Without connections, memory kept for the next step is returned to the system.
  if (idle) trim_host_memory();
}

std::shared_ptr<engine> server_impl::make_engine(const session_options& options) {
  auto e = make_master(task_, worker_, options);
  if (stopped_) fail(errc::unavailable, to_string(task_->name()), " was stopped");
  std::lock_guard lock(guard_);
  if (interrupted_) throw worker_->interrupted_error();
  std::erase_if(engines_, [](const auto& other) { return other.expired(); });
  engines_.push_back(e);
  return e;
}

}  // namespace ext

server::server(const cluster_spec& cluster, const std::string& job, int task,
               server_options options)
    : impl_(std::make_unique<ext::server_impl>(cluster, job, task, std::move(options))) {}
server::~server() {
  if (ext::is_forked()) impl_.release();  // leaked: the other process still serves
}
server::server(server&&) noexcept = default;
server server::local(server_options options) {
  return server(cluster_spec{{"localhost", {"localhost:0"}}}, "localhost", 0, std::move(options));
}
std::string server::target() const { return "deft://" + impl_->address(); }
const std::string& server::address() const { return impl_->address(); }
const cluster_spec& server::cluster() const { return impl_->cluster(); }
std::string server::name() const { return to_string(impl_->name()); }
void server::join() { impl_->coordination().join(); }
void server::interrupt() { impl_->interrupt(); }
void server::stop(std::chrono::nanoseconds linger) { impl_->stop(linger); }
void server::done() { impl_->coordination().done(); }
deft::ext::coordination& server::coordination() { return impl_->coordination(); }

}  // namespace deft
