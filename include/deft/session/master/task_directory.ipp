// SPDX-License-Identifier: Apache-2.0
// deft/session/master/task_directory.ipp: reaching the tasks that a graph needs.
#pragma once
#include <algorithm>
#include <deft/core/failure.hpp>
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
  const deadline most = known ? deadline_in(task_links::reconnect_time) : patience();
  try {
    c = cluster_->links().get(task, std::min(until, most), known);
  } catch (const error& e) {
    if (e.code() == errc::aborted)
      throw error(e.code(), e.message() + ": what it kept for this session is lost");
    if (e.code() == errc::deadline_exceeded && most < until)
      throw error(errc::unavailable, e.message());
    throw;
  }
  std::lock_guard lock(guard_);
  incarnations_.emplace(task, c->peer().incarnation);
  return c;
}

void task_directory::reach(const std::vector<placement>& tasks, const plan_limits& limits) {
  std::vector<placement> missing;
  {
    std::lock_guard lock(guard_);
    for (auto t : tasks)
      if (t != self_name_ && !incarnations_.contains(t)) missing.push_back(t);
  }
  if (missing.empty()) return;
  auto look = [&] {
    if (closed()) fail(errc::cancelled, "the session was closed");
    if (limits.cancelled()) fail(errc::cancelled, "the run was cancelled");
  };
  cluster_->links().reach(missing, {options_.connect_timeout, limits.until, look});
  for (auto t : missing) link(t, limits.until);
}

std::vector<message> task_directory::call_all(const std::vector<placement>& tasks, const message& m,
                                              const plan_limits& limits) {
  if (tasks.empty()) return {};
  const deadline until = std::min(limits.until, patience());
  // All before the first call: if one cannot be reached, none is called.
  std::vector<std::shared_ptr<channel>> links;
  for (auto t : tasks) links.push_back(link(t, limits.until));
  std::vector<std::shared_ptr<pending>> calls;
  for (const auto& l : links) calls.push_back(l->call(message(m)));
  hub& h = cluster_->hub();
  const std::stop_callback wake(limits.cancel, [&h] { h.notify(); });
  auto answered = [&] {
    return std::ranges::all_of(calls, [](const auto& c) { return c->done(); });
  };
  h.wait_until([&] { return answered() || cluster_->stopped() || closed() || limits.cancelled(); },
               until);
  std::vector<placement> missing;
  for (std::size_t i = 0; i < calls.size(); ++i)
    if (!calls[i]->done()) links[i]->abandon(*calls[i]), missing.push_back(tasks[i]);
  std::vector<message> answers;
  for (const auto& c : calls)
    if (c->done()) answers.push_back(c->take());
  if (missing.empty()) return answers;
  if (cluster_->stopped()) throw cluster_->stopped_error();
  if (closed()) fail(errc::cancelled, "the session was closed");
  if (limits.cancelled()) fail(errc::cancelled, "the run was cancelled");
  fail(errc::deadline_exceeded, "no answer in time from ",
       join(missing, ", ", [](placement t) { return to_string(*t); }));
}

std::vector<device_info> task_directory::devices_of(const std::vector<placement>& tasks,
                                                    const plan_limits& limits) {
  reach(tasks, limits);
  std::vector<placement> unknown;
  {
    std::lock_guard lock(guard_);
    for (auto t : tasks)
      if (t != self_name_ && !devices_.contains(t)) unknown.push_back(t);
  }
  auto answers = call_all(unknown, wire::pack(wire::devices()), limits);
  std::lock_guard lock(guard_);
  for (std::size_t i = 0; i < unknown.size(); ++i)
    devices_[unknown[i]] = wire::unpack<wire::device_list>(std::move(answers[i])).devices;
  std::vector<device_info> all;
  for (auto t : tasks) {
    const auto& of_task = t == self_name_ ? self_->devices() : devices_[t];
    all.insert(all.end(), of_task.begin(), of_task.end());
  }
  return all;
}

}  // namespace deft
