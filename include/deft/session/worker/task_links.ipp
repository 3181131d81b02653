// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/task_links.ipp: connecting, and connecting again.
#pragma once
#include <algorithm>
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/session/worker/task_links.hpp>

namespace deft {
namespace {

/// "60 s", "1.2 s", "250 ms".
std::string text_of(std::chrono::nanoseconds d) {
  using namespace std::chrono;
  const auto ms = round<milliseconds>(d).count();
  if (ms < 1'000) return str(ms, " ms");
  const auto tenths = (ms + 50) / 100;
  return tenths % 10 ? str(tenths / 10, ".", tenths % 10, " s") : str(tenths / 10, " s");
}

}  // namespace

std::string timeout_message(const std::string& address, std::chrono::nanoseconds waited,
                            const std::string& why) {
  const std::string known = str("cannot connect to ", address, ": ");
  const std::string reason = why.starts_with(known) ? why.substr(known.size()) : why;
  return str("timed out after ", text_of(waited), " waiting for ", address,
             reason.empty() ? "" : ": ", reason);
}

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
  // A channel may have ended without notice yet.
  if (!tasks.empty()) hub_.poll();
  std::map<placement, std::uint64_t> incarnations;
  for (auto task : tasks)
    if (auto c = standing(task)) incarnations.emplace(task, c->peer().incarnation);
  return incarnations;
}

std::shared_ptr<channel> task_links::get(placement task, deadline until, std::uint64_t incarnation,
                                         std::chrono::steady_clock::time_point since) {
  if (!task->task || *task->task >= cluster_.tasks(task->job))
    fail(errc::not_found, "the cluster has no task ", *task, "; it is ", cluster_);
  const std::string& address = cluster_.address(task->job, *task->task);
  auto e = entry_of(task);
  // An old channel may have ended without notice yet.
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
    const auto tries = e->tries;
    auto over = [&] { return e->tries != tries; };
    bool in_time = true;
    until == no_deadline ? e->changed.wait(lock, over)
                         : static_cast<void>(in_time = e->changed.wait_until(lock, until, over));
    if (!in_time)
      fail(errc::deadline_exceeded, *task, ": ", timeout_message(address, until - since, ""));
    if (e->tries == tries + 1 && e->failure && until <= later(e->until, std::chrono::seconds(1)))
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
  events.on_lost = [task, f = on_lost_, weak = std::weak_ptr(e)](const error& why) {
    if (const auto of = weak.lock()) {
      std::lock_guard lock(of->guard);
      of->why_lost = why.message();
    }
    if (f) f(task, why);
  };
  auto failure = failure_of([&] {
    auto c = hub_.connect(address, until, std::move(events));
    if (c->peer().name != to_string(*task))
      fail(errc::failed_precondition, address, " is ", c->peer().name);
    fresh = std::move(c);
  });
  lock.lock();
  if (fresh && !fresh->lost()) e->why_lost.clear();
  if (failure) {
    std::string text = failure->message();
    if (failure->code() == errc::deadline_exceeded)
      text = timeout_message(address, until - since, text);
    if (!e->why_lost.empty()) text += "; " + e->why_lost;
    failure = std::make_shared<const error>(failure->code(), str(*task, ": ", text));
  }
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

void task_links::reach(std::vector<placement> tasks, const reach_options& options) {
  using namespace std::chrono_literals;
  const auto begin = std::chrono::steady_clock::now();
  const deadline patience = later(begin, options.patience);
  const deadline until = std::min(patience, options.until);
  bool told = false;
  for (std::chrono::nanoseconds turn = 250ms;;
       turn = std::min<std::chrono::nanoseconds>(2 * turn, 1s)) {
    std::string reasons;
    std::erase_if(tasks, [&](placement t) {
      const deadline turn_ends = std::min(until, deadline_in(turn));
      const auto failure = failure_of([&] { get(t, turn_ends, 0, begin); });
      if (!failure) return true;
      if (failure->code() != errc::deadline_exceeded && failure->code() != errc::unavailable)
        throw error(*failure);
      reasons += str(reasons.empty() ? "" : "; ", failure->message());
      return false;
    });
    if (tasks.empty()) return;
    if (stopped_) throw error(*stopped_error_);
    if (options.look) options.look();
    const auto now = std::chrono::steady_clock::now();
    if (now >= until)
      throw error(until == patience ? errc::unavailable : errc::deadline_exceeded, reasons);
    if (!told && now - begin >= 1s) logging::warning("still waiting: ", reasons), told = true;
  }
}

std::shared_ptr<channel> task_links::wait_for(placement task, deadline until) {
  check_running();
  reach({task}, {.until = until, .look = [&] { check_running(); }});
  return get(task, until);
}

void task_links::check_running() const {
  if (stopped_) throw error(*stopped_error_);
  if (interrupted_) throw error(*interrupted_error_);
}

void task_links::interrupt(const error& why) {
  {
    std::lock_guard lock(guard_);
    if (interrupted_) return;
    interrupted_error_ = std::make_shared<const error>(why);
    interrupted_ = true;
  }
  hub_.notify();
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
