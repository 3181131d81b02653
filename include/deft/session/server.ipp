// SPDX-License-Identifier: Apache-2.0
// deft/session/server.ipp: a task's server.
#pragma once
#include <deft/core/log.hpp>
#include <deft/session/master.hpp>
#include <deft/session/protocol.hpp>
#include <deft/session/server_impl.hpp>

namespace deft {
namespace {

struct server_table {
  std::mutex guard;
  std::map<std::string, server_impl*> by_address;
};
server_table& servers_here() {
  static auto& t = *new server_table;
  return t;
}

std::string secret_or_environment(const std::string& given) {
  return given.empty() ? secret_of_environment() : given;
}

}  // namespace

std::shared_ptr<engine> server_impl::make_engine_at(const std::string& address,
                                                    const session_options& options) {
  auto& t = servers_here();
  std::lock_guard lock(t.guard);  // a server leaves the table before it ends
  auto at = t.by_address.find(address);
  return at == t.by_address.end() ? nullptr : at->second->make_engine(options);
}

server_impl::server_impl(const cluster_spec& cluster, const std::string& job, int task,
                         server_options options)
    : options_(std::move(options)) {
  options_.secret = secret_or_environment(options_.secret);
  device_name name = task_name(job, task);
  listen_options l;
  l.address = cluster.address(job, task);
  l.fd = options_.listen_fd;
  l.insecure = options_.insecure;
  task_ = std::make_shared<task_runtime>(name, options_.cpu_devices, gpu::options_of(options_));
  l.self = {to_string(name), task_->incarnation(), cluster.fingerprint(), options_.secret};
  // The port may be chosen here; the worker's copy of the cluster has the one that was.
  if (l.fd < 0 && l.address.ends_with(":0")) l.fd = listen_socket(l.address);
  cluster_spec known = cluster;
  if (l.fd >= 0) known.set_address(job, task, address_of_socket(l.fd));
  worker_ = std::make_shared<worker>(task_, std::move(known), l.self);
  listener_ = std::make_unique<listener>(std::move(l), *this);
  auto& t = servers_here();
  std::lock_guard lock(t.guard);
  t.by_address[listener_->address()] = this;
  t.by_address[worker_->cluster().address(job, task)] = this;
}

server_impl::~server_impl() { stop(); }

void server_impl::stop() {
  {
    auto& t = servers_here();
    std::lock_guard lock(t.guard);
    std::erase_if(t.by_address, [&](const auto& e) { return e.second == this; });
  }
  std::vector<std::shared_ptr<engine>> engines;
  {
    std::lock_guard lock(guard_);
    if (stopped_) return;
    stopped_ = true;
    for (auto& [id, s] : sessions_) engines.push_back(s->master);
    sessions_.clear();
  }
  changed_.notify_all();
  // First the worker: steps that wait here are told why.
  worker_->stop();
  for (auto& e : engines) e->close();
  listener_->stop();
  // What they began holds the devices' memory.
  worker_->elsewhere().wait();
}

void server_impl::on_open(const std::shared_ptr<connection>& c) {
  std::lock_guard lock(guard_);
  ++connections_;
  if (!is_worker(c->peer().name)) return;
  auto& u = users_[c->peer().name];
  ++u.connections;
  u.done = false;
}

void server_impl::on_close(const std::shared_ptr<connection>& c, const error* why) {
  if (why) logging::info(task_->name(), ": ", c->peer(), " is gone: ", why->what());
  worker_->connection_lost(c.get(), c->peer());
  std::vector<std::shared_ptr<client_session>> gone;
  bool idle = false;
  {
    std::lock_guard lock(guard_);
    idle = --connections_ == 0;
    for (auto i = sessions_.begin(); i != sessions_.end();) {
      if (i->second->owner == c.get()) {
        gone.push_back(std::move(i->second));
        i = sessions_.erase(i);
      } else {
        ++i;
      }
    }
    auto u = users_.find(c->peer().name);
    if (u != users_.end() && u->second.connections && --u->second.connections == 0)
      u->second.lost = std::chrono::steady_clock::now();
    std::erase_if(waiting_, [](const auto& w) { return w.second.first.expired(); });
  }
  changed_.notify_all();
  for (auto& s : gone) s->master->close();
  gone.clear();
  // Nobody is there: the memory kept for the next step is the system's again.
  if (idle) trim_host_memory();
}

std::size_t server_impl::waiting() const {
  std::lock_guard lock(guard_);
  return waiting_.size();
}

void server_impl::signal_at(const device_name& task, const std::string& name,
                            std::chrono::nanoseconds timeout) {
  if (task == task_->name()) return signal(name);
  deadline until = deadline_in(timeout);
  auto c = worker_->link(intern(task), until);
  message m = make_message(request::set_signal);
  m.meta = to_bytes(name);
  auto p = c->call(m);
  if (!worker_->hub().wait_for(*p, until)) {
    c->abandon(*p);
    fail(errc::deadline_exceeded, task, " does not take the signal \"", name, "\"");
  }
  p->take();
}

void server_impl::wait_for_signal(const device_name& of, const std::string& name,
                                  std::chrono::nanoseconds timeout) {
  deadline until = deadline_in(timeout);
  auto late = [&] {
    fail(errc::deadline_exceeded, "waited for \"", name, "\" of ", of, " in vain");
  };
  if (of == task_->name()) {
    std::unique_lock lock(guard_);
    if (!changed_.wait_until(lock, until, [&] { return stopped_ || signals_.contains(name); }))
      late();
    if (stopped_) throw worker_->stopped_error();
    return;
  }
  auto c = worker_->link(intern(of), until);
  message m = make_message(request::wait_signal);
  m.meta = to_bytes(name);
  auto p = c->call(m);
  if (!worker_->hub().wait_until([&] { return p->done() || worker_->stopped(); }, until)) {
    c->abandon(*p);
    late();
  }
  if (worker_->stopped()) throw worker_->stopped_error();
  p->take();
}

void server_impl::done() {
  constexpr auto patience = std::chrono::seconds(2);
  for (const auto& n : cluster().task_names()) {
    if (n.job != "ps") continue;
    auto failure = caught([&] {
      auto c = worker_->link(intern(n), deadline_in(patience));
      message m = make_message(request::done);
      m.meta = to_bytes(to_string(task_->name()));
      auto p = c->call(m);
      // Without the answer the end of this process could overtake the message.
      if (!worker_->hub().wait_for(*p, deadline_in(patience)))
        fail(errc::deadline_exceeded, "it does not answer");
      p->take();
    });
    if (failure) logging::info(n, " was not told that this task is done: ", failure->what());
  }
}

bool server_impl::is_worker(const std::string& name) const {
  for (int i = 0; i < cluster().tasks("worker"); ++i)
    if (name == to_string(task_name("worker", i))) return true;
  return false;
}

bool server_impl::all_workers_done(std::chrono::steady_clock::time_point& look_again) {
  auto now = std::chrono::steady_clock::now();
  look_again = now + std::chrono::hours(1);
  bool all = true;
  for (int i = 0; i < cluster().tasks("worker"); ++i) {
    auto u = users_.find(to_string(task_name("worker", i)));
    if (u == users_.end()) {
      all = false;
    } else if (!u->second.done) {
      auto given_up = u->second.lost + options_.away;
      if (u->second.connections == 0 && now >= given_up) continue;
      if (u->second.connections == 0) look_again = std::min(look_again, given_up);
      all = false;
    }
  }
  return all;
}

void server_impl::join() {
  std::unique_lock lock(guard_);
  while (!stopped_) {
    auto look_again = std::chrono::steady_clock::now() + std::chrono::hours(1);
    if (task_->name().job == "ps" && cluster().tasks("worker") && all_workers_done(look_again))
      return;
    changed_.wait_until(lock, look_again);
  }
}

std::shared_ptr<engine> server_impl::make_engine(const session_options& options) {
  auto e = make_master(task_, worker_, options);
  std::lock_guard lock(guard_);
  if (stopped_) fail(errc::unavailable, "the server has stopped");
  return e;
}

server::server(const cluster_spec& cluster, const std::string& job, int task,
               server_options options)
    : impl_(std::make_unique<server_impl>(cluster, job, task, std::move(options))) {}
server::~server() = default;
server::server(server&&) noexcept = default;
server server::local(server_options options) {
  return server(cluster_spec{{"localhost", {"localhost:0"}}}, "localhost", 0, std::move(options));
}
std::string server::target() const { return "deft://" + impl_->address(); }
const std::string& server::address() const { return impl_->address(); }
const cluster_spec& server::cluster() const { return impl_->cluster(); }
std::string server::name() const { return to_string(impl_->name()); }
void server::join() { impl_->join(); }
void server::stop() { impl_->stop(); }
void server::done() { impl_->done(); }
void server::signal(const std::string& name) { impl_->signal(name); }
void server::wait_for_signal(const std::string& of_job, int of_task, const std::string& name,
                             std::chrono::nanoseconds timeout) {
  impl_->wait_for_signal(task_name(of_job, of_task), name, timeout);
}

}  // namespace deft
