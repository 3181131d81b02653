// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/task_links.ipp: connecting, and connecting again.
#pragma once
#include <deft/core/failure.hpp>
#include <deft/session/worker/task_links.hpp>

namespace deft {

task_links::task_links(cluster_spec cluster, process_identity self)
    : cluster_(std::move(cluster)), hub_(hub_options{std::move(self), {}}) {}

std::shared_ptr<task_links::entry> task_links::entry_of(placement task) {
  std::lock_guard lock(guard_);
  auto& e = entries_[task];
  if (!e) e = std::make_shared<entry>();
  return e;
}

std::shared_ptr<channel> task_links::standing(placement task) {
  auto e = entry_of(task);
  std::lock_guard lock(e->guard);
  return e->channel && !e->channel->lost() ? e->channel : nullptr;
}

std::map<placement, std::uint64_t> task_links::standing() {
  std::vector<placement> tasks;
  {
    std::lock_guard lock(guard_);
    for (const auto& [task, e] : entries_) tasks.push_back(task);
  }
  // Nothing was read while nobody waited: a channel may have ended without notice.
  if (!tasks.empty()) hub_.poll();
  std::map<placement, std::uint64_t> incarnations;
  for (auto task : tasks)
    if (auto c = standing(task)) incarnations.emplace(task, c->peer().incarnation);
  return incarnations;
}

std::shared_ptr<channel> task_links::get(placement task, deadline until,
                                         std::uint64_t incarnation) {
  if (!task->task || *task->task >= cluster_.tasks(task->job))
    fail(errc::not_found, "the cluster has no task ", *task, "; it is ", cluster_);
  const std::string& address = cluster_.address(task->job, *task->task);
  auto e = entry_of(task);
  // Nothing was read while nobody waited: an old channel may have ended without notice.
  if (!incarnation) hub_.poll();
  std::unique_lock lock(e->guard);
  for (;;) {
    if (stopped_) throw error(*stopped_error_);
    if (e->channel && !e->channel->lost() &&
        (!incarnation || e->channel->peer().incarnation == incarnation))
      return e->channel;
    if (!e->connecting) break;
    // What another thread's try ends with is ours too, if it took about as long as ours would: in
    // turns, each would wait.
    const auto before = e->tries;
    auto over = [&] { return e->tries != before; };
    bool in_time = true;
    until == no_deadline ? e->changed.wait(lock, over)
                         : static_cast<void>(in_time = e->changed.wait_until(lock, until, over));
    if (!in_time)
      fail(errc::deadline_exceeded, *task, " at ", address, " cannot be reached in time");
    if (e->tries == before + 1 && e->failure && until <= later(e->until, std::chrono::seconds(1)))
      throw error(*e->failure);
  }
  e->connecting = true;
  e->until = until;
  auto old = std::move(e->channel);
  lock.unlock();
  old.reset();
  std::shared_ptr<channel> fresh;
  channel_events events;
  events.on_message = on_message_;
  if (on_lost_) events.on_lost = [task, f = on_lost_](const error& why) { f(task, why); };
  auto failure = failure_of([&] { fresh = hub_.connect(address, until, std::move(events)); });
  if (failure)
    failure = std::make_shared<const error>(failure->code(), str(*task, ": ", failure->message()));
  lock.lock();
  e->connecting = false;
  ++e->tries;
  e->failure = failure;
  e->channel = fresh;
  e->changed.notify_all();
  lock.unlock();
  if (failure) throw error(*failure);
  if (stopped_) {
    fresh->close();
    throw error(*stopped_error_);
  }
  if (incarnation && fresh->peer().incarnation != incarnation)
    fail(errc::aborted, *task, " at ", address, " has restarted");
  return fresh;
}

void task_links::stop(const error& why) {
  std::vector<std::shared_ptr<entry>> all;
  {
    std::lock_guard lock(guard_);
    if (stopped_) return;
    stopped_error_ = std::make_shared<const error>(why);
    stopped_ = true;
    for (const auto& [task, e] : entries_) all.push_back(e);
  }
  for (auto& e : all) {
    std::lock_guard lock(e->guard);
    if (e->channel) e->channel->close();
  }
  hub_.notify();
}

}  // namespace deft
