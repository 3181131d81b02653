// SPDX-License-Identifier: Apache-2.0
// deft/session/master/task_directory.ipp: reaching the tasks that a graph needs.
#pragma once
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/session/master/task_directory.hpp>
#include <deft/session/wire/codec.hpp>

namespace deft {

task_directory::task_directory(std::shared_ptr<task_runtime> self, std::shared_ptr<worker> cluster,
                               session_options options)
    : self_(std::move(self)),
      self_name_(intern(self_->name())),
      cluster_(std::move(cluster)),
      options_(std::move(options)),
      session_(random_incarnation()),
      steps_(options_.first_step) {
  if (!options_.stream) options_.stream = 0;
  if (cluster_) incarnations_ = cluster_->links().standing();
}

void task_directory::check_open() const {
  if (cluster_ && cluster_->stopped()) throw cluster_->stopped_error();
  if (closed()) fail(errc::failed_precondition, "the session is closed");
}

task_directory::step::step(task_directory& d) : directory_(d) {
  std::lock_guard lock(d.guard_);
  at_ = d.under_way_.insert(d.next_step()).first;
  ended_below_ = *d.under_way_.begin();
}
task_directory::step::~step() {
  std::lock_guard lock(directory_.guard_);
  directory_.under_way_.erase(at_);
}

std::map<placement, std::uint64_t> task_directory::incarnations() const {
  std::lock_guard lock(guard_);
  return incarnations_;
}

std::shared_ptr<channel> task_directory::link(placement task, deadline until) {
  std::uint64_t known = 0;
  {
    std::lock_guard lock(guard_);
    auto at = incarnations_.find(task);
    if (at != incarnations_.end()) known = at->second;
  }
  std::shared_ptr<channel> c;
  try {
    deadline most = known ? deadline_in(task_links::reconnect_time) : patience();
    c = cluster_->links().get(task, std::min(until, most), known);
  } catch (const error& e) {
    if (e.code() == errc::aborted)
      throw error(e.code(), e.message() + ": what it kept for this session is lost");
    if (known && e.code() == errc::deadline_exceeded) throw error(errc::unavailable, e.message());
    throw;
  }
  std::lock_guard lock(guard_);
  incarnations_.emplace(task, c->peer().incarnation);
  return c;
}

void task_directory::reach(const std::set<placement>& tasks, const plan_limits& limits) {
  using namespace std::chrono_literals;
  const deadline until = std::min(limits.until, patience()), tell = deadline_in(1s);
  std::vector<placement> missing;
  {
    std::lock_guard lock(guard_);
    for (auto t : tasks)
      if (t != self_name_ && !incarnations_.contains(t)) missing.push_back(t);
  }
  bool told = false;
  for (std::chrono::nanoseconds turn = 250ms; !missing.empty();
       turn = std::min<std::chrono::nanoseconds>(2 * turn, 1s)) {
    std::string reasons;
    std::erase_if(missing, [&](placement t) {
      auto failure = failure_of([&] { link(t, std::min(until, deadline_in(turn))); });
      if (!failure) return true;
      if (failure->code() != errc::deadline_exceeded) throw error(*failure);
      reasons += str(reasons.empty() ? "" : "; ", failure->message());
      return false;
    });
    if (missing.empty()) return;
    if (cluster_->stopped()) throw cluster_->stopped_error();
    if (closed()) fail(errc::cancelled, "the session was closed");
    if (limits.cancelled()) fail(errc::cancelled, "the run was cancelled");
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) fail(errc::deadline_exceeded, "waited in vain for ", reasons);
    if (!told && now >= tell) logging::warning("waiting for ", reasons), told = true;
  }
}

message task_directory::call(placement task, message&& m) {
  auto c = link(task);
  return cluster_->links().call(*c, std::move(m), patience(), [&] {
    return str(*task, " at ", c->address(), " does not answer");
  });
}

const std::vector<device_info>& task_directory::devices_of(placement task) {
  {
    std::lock_guard lock(guard_);
    auto at = devices_.find(task);
    if (at != devices_.end()) return at->second;
  }
  std::vector<device_info> list;
  if (task == self_name_) {
    list = self_->devices();
  } else {
    list = wire::unpack<wire::device_list>(call(task, wire::pack(wire::devices()))).devices;
  }
  std::lock_guard lock(guard_);
  return devices_.emplace(task, std::move(list)).first->second;
}

}  // namespace deft
