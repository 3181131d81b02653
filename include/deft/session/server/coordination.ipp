// SPDX-License-Identifier: Apache-2.0
// deft/session/server/coordination.ipp: signals, and the end of a job.
#pragma once
#include <algorithm>
#include <deft/core/failure.hpp>
#include <deft/session/server/coordination.hpp>

namespace deft {
namespace {

// Of a task, and of what one connection may wait for.
constexpr std::size_t most_signals = 65'536, most_waits = 1'024, longest_name = 256;

void check_name(const std::string& name) {
  if (name.size() > longest_name)
    fail(errc::invalid_argument, "a signal's name has at most ", longest_name, " bytes, not ",
         name.size());
}

}  // namespace

void coordination::signal(const std::string& name) {
  check_name(name);
  std::vector<wire::caller> released;
  {
    std::lock_guard lock(guard_);
    if (signals_.size() == most_signals && !signals_.contains(name))
      fail(errc::resource_exhausted, worker_->task().name(), " has too many signals");
    signals_.insert(name);
    auto [begin, end] = waiting_.equal_range(name);
    for (auto i = begin; i != end; ++i) released.push_back(std::move(i->second));
    waiting_.erase(begin, end);
  }
  changed_.notify_all();
  for (const auto& w : released) w.answer_with([] { return wire::nothing(); });
}

void coordination::signal(const device_name& task, const std::string& name,
                          std::chrono::nanoseconds timeout) {
  if (task == worker_->task().name()) return signal(name);
  const deadline until = deadline_in(timeout);
  auto c = worker_->links().get(intern(task), until);
  worker_->links().call(*c, wire::pack(wire::set_signal{name}), until,
                        [&] { return str(task, " does not take the signal \"", name, "\""); });
}

void coordination::wait(const device_name& task, const std::string& name,
                        std::chrono::nanoseconds timeout) {
  const deadline until = deadline_in(timeout);
  auto late = [&] { return str("waited for \"", name, "\" of ", task, " in vain"); };
  if (task == worker_->task().name()) {
    std::unique_lock lock(guard_);
    if (!changed_.wait_until(lock, until, [&] { return stopped_ || signals_.contains(name); }))
      fail(errc::deadline_exceeded, late());
    if (stopped_) throw worker_->stopped_error();
    return;
  }
  auto c = worker_->links().get(intern(task), until);
  worker_->links().call(*c, wire::pack(wire::wait_signal{name}), until, late);
}

std::size_t coordination::waiting() const {
  std::lock_guard lock(guard_);
  return waiting_.size();
}

void coordination::done() {
  constexpr auto patience = std::chrono::seconds(2);
  for (const auto& n : worker_->cluster().task_names()) {
    if (n.job != "ps") continue;
    auto failure = failure_of([&] {
      auto c = worker_->links().get(intern(n), deadline_in(patience));
      // Without the answer the end of this process could overtake the message.
      worker_->links().call(*c, wire::pack(wire::done{to_string(worker_->task().name())}),
                            deadline_in(patience), [] { return "it does not answer"; });
    });
    if (failure) logging::info(n, " was not told that this task is done: ", failure->what());
  }
}

void coordination::join() {
  const bool waits_for_workers =
      worker_->task().name().job == "ps" && worker_->cluster().tasks("worker");
  std::unique_lock lock(guard_);
  while (!stopped_) {
    auto look_again = std::chrono::steady_clock::now() + std::chrono::hours(1);
    if (waits_for_workers && all_workers_done(look_again)) return;
    changed_.wait_until(lock, look_again);
  }
}

void coordination::stop() {
  {
    std::lock_guard lock(guard_);
    stopped_ = true;
  }
  changed_.notify_all();
}

void coordination::on_open(const connection& c) {
  std::lock_guard lock(guard_);
  if (!is_worker(c.peer().name)) return;
  auto& u = users_[c.peer().name];
  ++u.connections;
  u.done = false;
}

void coordination::on_close(const std::shared_ptr<connection>& c) {
  {
    std::lock_guard lock(guard_);
    auto u = users_.find(c->peer().name);
    if (u != users_.end() && u->second.connections && --u->second.connections == 0)
      u->second.lost = std::chrono::steady_clock::now();
    std::erase_if(waiting_, [&](const auto& w) { return w.second.from() == c; });
  }
  changed_.notify_all();
}

void coordination::on_wait(const wire::caller& from, wire::wait_signal&& m) {
  check_member(*from.from());
  check_name(m.name);
  {
    std::lock_guard lock(guard_);
    if (!signals_.contains(m.name)) {
      const auto waits = std::ranges::count_if(
          waiting_, [&](const auto& w) { return w.second.from() == from.from(); });
      if (static_cast<std::size_t>(waits) == most_waits)
        fail(errc::resource_exhausted, from.from()->peer().name, " waits for ", most_waits,
             " signals of ", worker_->task().name(), " already");
      waiting_.emplace(std::move(m.name), from);
      return;
    }
  }
  from.answer(wire::nothing());
}

void coordination::on_signal(const wire::caller& from, wire::set_signal&& m) {
  check_member(*from.from());
  signal(m.name);
  if (from.id()) from.answer(wire::nothing());
}

void coordination::on_done(const wire::caller& from, wire::done&& m) {
  {
    std::lock_guard lock(guard_);
    if (!is_worker(m.task)) fail(errc::not_found, "there is no worker \"", m.task, "\"");
    users_[m.task].done = true;
  }
  changed_.notify_all();
  if (from.id()) from.answer(wire::nothing());
}

/// Signals stay as long as the task: they are for the tasks of a job.
void coordination::check_member(const connection& c) const {
  for (const auto& n : worker_->cluster().task_names())
    if (c.peer().name == to_string(n)) return;
  fail(errc::permission_denied, "only tasks of the cluster signal and wait for signals, not \"",
       c.peer().name, "\"");
}

bool coordination::is_worker(const std::string& name) const {
  for (int i = 0; i < worker_->cluster().tasks("worker"); ++i)
    if (name == to_string(task_name("worker", i))) return true;
  return false;
}

bool coordination::all_workers_done(std::chrono::steady_clock::time_point& look_again) {
  auto now = std::chrono::steady_clock::now();
  look_again = now + std::chrono::hours(1);
  bool all = true;
  for (int i = 0; i < worker_->cluster().tasks("worker"); ++i) {
    auto u = users_.find(to_string(task_name("worker", i)));
    if (u == users_.end()) {
      all = false;
    } else if (!u->second.done) {
      auto given_up = u->second.lost + away_;
      if (u->second.connections == 0 && now >= given_up) continue;
      if (u->second.connections == 0) look_again = std::min(look_again, given_up);
      all = false;
    }
  }
  return all;
}

}  // namespace deft
