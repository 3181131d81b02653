// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/task_links.ipp: connects to other tasks, and reconnects.
#pragma once
#include <algorithm>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/session/threads/awaited.hpp>
#include <deft/session/worker/task_links.hpp>

namespace deft {
namespace {

/// Whether the task may still come up after this error.
bool is_missing(const error& e) {
  return e.code() == errc::deadline_exceeded || e.code() == errc::unavailable;
}

}  // namespace

std::string timeout_message(const std::string& address, std::chrono::nanoseconds waited,
                            const std::string& why) {
  const std::string known = str(" waiting for ", address, ": ");  // of channel_group::connect
  const auto at = why.find(known);
  const std::string reason = at == why.npos ? why : why.substr(at + known.size());
  return str("timed out after ", duration_text(waited), " waiting for ", address,
             reason.empty() ? "" : ": ", reason);
}

task_links::task_links(cluster_spec cluster, process_identity self, background_work& dialling)
    : cluster_(std::move(cluster)),
      dialling_(dialling),
      channels_(channel_options{std::move(self), {}}) {}

std::shared_ptr<task_links::entry> task_links::entry_of(placement task) {
  std::lock_guard lock(guard_);
  auto& e = entries_[task];
  if (!e) e = std::make_shared<entry>();
  return e;
}

std::shared_ptr<channel> task_links::standing(placement task, std::uint64_t incarnation) {
  auto e = entry_of(task);
  std::lock_guard lock(e->guard);
  return leads_to(*e, incarnation) ? e->channel : nullptr;
}

std::map<placement, std::uint64_t> task_links::standing() {
  std::vector<placement> tasks;
  {
    std::lock_guard lock(guard_);
    for (const auto& [task, e] : entries_) tasks.push_back(task);
  }
  // Notices channels that have ended.
  if (!tasks.empty()) channels_.poll();
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
  // Notices an old channel that has ended.
  if (!incarnation) channels_.poll();
  std::unique_lock lock(e->guard);
  for (;;) {
    if (stopped_) throw error(*stopped_error_);
    if (leads_to(*e, incarnation)) return e->channel;
    if (!e->connecting) break;
    // Another thread is connecting. If its attempt lasts about as long as ours would, its result is
    // ours too; otherwise threads would wait one after another.
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
      std::lock_guard guard(of->guard);
      of->why_lost = why.message();
    }
    if (f) f(task, why);
  };
  auto failure = failure_of([&] {
    auto c = channels_.connect(address, until, std::move(events));
    if (c->peer().name != to_string(*task))
      fail(errc::failed_precondition, address, " is ", c->peer().name);
    fresh = std::move(c);
  });
  lock.lock();
  if (fresh && !fresh->lost()) e->why_lost.clear();
  if (failure) {
    std::string text = failure->message();
    auto code = failure->code();
    if (code == errc::unavailable) {  // nobody answered until the deadline
      code = errc::deadline_exceeded;
      text = timeout_message(address, until - since, text);
    }
    if (!e->why_lost.empty()) text += "; " + e->why_lost;
    failure = std::make_shared<const error>(code, str(*task, ": ", text));
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

bool task_links::leads_to(const entry& e, std::uint64_t incarnation) {
  return e.channel && !e.channel->lost() &&
         (!incarnation || e.channel->peer().incarnation == incarnation);
}

void task_links::when_linked(placement task, deadline until, std::uint64_t incarnation,
                             std::stop_token given_up, link_callback then) {
  auto e = entry_of(task);
  std::shared_ptr<channel> standing;
  {
    std::lock_guard lock(e->guard);
    if (leads_to(*e, incarnation)) {
      standing = e->channel;
    } else {
      e->waiting.push_back({until, std::chrono::steady_clock::now(), incarnation,
                            std::move(given_up), std::move(then)});
      if (std::exchange(e->dialling, true)) return;
    }
  }
  if (standing) return then(std::move(standing), nullptr);
  const auto failure = failure_of([&] { dialling_.run([this, task, e] { dial(task, *e); }); });
  if (!failure) return;
  std::vector<waiting> all;
  {
    std::lock_guard lock(e->guard);
    e->dialling = false;
    all.swap(e->waiting);
  }
  for (auto& w : all) w.then(nullptr, failure);
}

/// Connects as long as a caller waits. Tries for short turns, after each of which it looks for
/// callers that have given up or have joined.
void task_links::dial(placement task, entry& e) {
  using namespace std::chrono_literals;
  bool told = false;
  for (std::chrono::nanoseconds turn = 250ms;;
       turn = std::min<std::chrono::nanoseconds>(2 * turn, 1s)) {
    std::vector<waiting> all, left;
    {
      std::lock_guard lock(e.guard);
      all.swap(e.waiting);
      std::erase_if(all, [](const waiting& w) { return w.given_up.stop_requested(); });
      if (all.empty()) {
        e.dialling = false;
        return;
      }
    }
    const deadline turn_ends =
        std::min(deadline_in(turn), std::ranges::max(all, {}, &waiting::until).until);
    std::shared_ptr<const error> missing;
    for (auto& w : all) {
      std::shared_ptr<channel> c;
      const auto failure =
          missing ? missing : failure_of([&] { c = get(task, turn_ends, w.incarnation, w.since); });
      if (failure && is_missing(*failure)) missing = failure;
      if (failure && failure == missing && !stopped_ && std::chrono::steady_clock::now() < w.until)
        left.push_back(std::move(w));
      else
        w.then(std::move(c), failure);
    }
    if (left.empty()) continue;
    if (!told && std::chrono::steady_clock::now() - left.front().since >= 1s)
      logging::warning("still waiting: ", missing->message()), told = true;
    std::lock_guard lock(e.guard);
    e.waiting.insert(e.waiting.begin(), std::move_iterator(left.begin()),
                     std::move_iterator(left.end()));
  }
}

namespace {

/// Collects the results of connecting to several tasks.
class reached_tasks {
 public:
  reached_tasks(std::size_t left, errc late, std::function<void(std::shared_ptr<const error>)> then)
      : left_(left), late_(late), then_(std::move(then)) {}

  void add(std::shared_ptr<const error> failure) {
    {
      std::lock_guard lock(guard_);
      if (left_ == 0) return;
      --left_;
      if (failure && !is_missing(*failure)) {
        left_ = 0;
      } else {
        if (failure) reasons_ += str(reasons_.empty() ? "" : "; ", failure->message());
        failure = reasons_.empty() ? nullptr : std::make_shared<const error>(late_, reasons_);
      }
      if (left_ > 0) return;
    }
    then_(std::move(failure));
  }

 private:
  std::mutex guard_;
  std::size_t left_;
  const errc late_;
  const std::function<void(std::shared_ptr<const error>)> then_;
  std::string reasons_;
};

}  // namespace

void task_links::when_reached(const std::vector<placement>& tasks, const reach_options& options,
                              std::stop_token given_up,
                              std::function<void(std::shared_ptr<const error>)> then) {
  if (tasks.empty()) return then(nullptr);
  const deadline patience = deadline_in(options.patience);
  const bool patient = patience <= options.until;
  const auto all = std::make_shared<reached_tasks>(
      tasks.size(), patient ? errc::unavailable : errc::deadline_exceeded, std::move(then));
  for (auto t : tasks)
    when_linked(t, patient ? patience : options.until, 0, given_up,
                [all](const std::shared_ptr<channel>&, std::shared_ptr<const error> failure) {
                  all->add(std::move(failure));
                });
}

void task_links::reach(const std::vector<placement>& tasks, const reach_options& options,
                       const std::function<bool()>& give_up) {
  const auto all = std::make_shared<awaited<>>();
  std::stop_source given_up;
  when_reached(tasks, options, given_up.get_token(),
               [this, all](std::shared_ptr<const error> failure) {
                 all->bring(channels_, std::move(failure));
               });
  channels_.wait_until([&] { return all->over() || stopped_ || give_up(); });
  given_up.request_stop();
  if (stopped_) throw error(*stopped_error_);
  if (all->over()) all->get();
}

std::shared_ptr<channel> task_links::wait_for(placement task, deadline until) {
  check_running();
  reach({task}, {.until = until}, [this] { return interrupted_.load(); });
  check_running();
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
  channels_.notify();
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
  channels_.notify();
}

}  // namespace deft
