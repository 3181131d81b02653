// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/task_links.ipp: connects to other tasks, and reconnects.
#pragma once
#include <algorithm>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/session/threads/awaited.hpp>
#include <deft/session/worker/task_links.hpp>

namespace deft::ext {
namespace {

/// Whether the task may still come up after this error.
bool is_missing(const error& e) {
  return e.code() == errc::deadline_exceeded || e.code() == errc::unavailable;
}

}  // namespace

task_links::task_links(cluster_spec cluster, process_identity self, background_work& work)
    : cluster_(std::move(cluster)), work_(work), channels_(channel_options{std::move(self), {}}) {}

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

void task_links::note_end(placement task, bool ended) {
  const auto e = entry_of(task);
  std::lock_guard lock(e->guard);
  e->ended = ended;
}
error task_links::ended_error(const device_name& task) {
  return error(errc::unavailable, str(task, " has ended: it said that it was done"));
}
bool task_links::has_ended(placement task) {
  const auto e = entry_of(task);
  std::lock_guard lock(e->guard);
  return e->ended;
}

bool task_links::leads_to(const entry& e, std::uint64_t incarnation) {
  return e.channel && !e.channel->lost() &&
         (!incarnation || e.channel->peer().incarnation == incarnation);
}

/// A task that is being connected, by attempts for short turns: after each, callers that have given
/// up are forgotten, and others may have joined.
struct task_links::dialled_task {
  placement task;
  std::string address;
  std::shared_ptr<entry> at;
  background_work::token under_way;
  std::chrono::nanoseconds turn = std::chrono::milliseconds(250);
  deadline turn_ends{};
};

void task_links::when_linked(placement task, deadline until, std::uint64_t incarnation,
                             std::stop_token given_up, link_callback then) {
  if (!task->task || *task->task >= cluster_.tasks(task->job))
    return then(nullptr, make_failure(errc::not_found, "the cluster has no task ", *task,
                                      "; it is ", cluster_));
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
  // clang before 16 makes no aggregates in make_shared.
  or_fail_all(*e, [&] {
    dial(std::shared_ptr<dialled_task>(
        new dialled_task{task, cluster_.address(task->job, *task->task), e, work_.begin()}));
  });
}

void task_links::waiting::tell(std::shared_ptr<channel> c,
                               const std::shared_ptr<const error>& why) const {
  if (given_up.stop_requested()) return;
  if (const auto thrown = failure_of([&] { then(std::move(c), why); }))
    (void)failure_of([&] { logging::warning("what waited for a task failed: ", thrown->what()); });
}

/// If `f`, which dials a task, throws, all that wait for the task fail.
template <class F>
void task_links::or_fail_all(entry& e, F f) {
  const auto failure = failure_of(f);
  if (!failure) return;
  std::vector<waiting> over;
  {
    std::lock_guard lock(e.guard);
    over.swap(e.waiting);
    e.dialling = false;
  }
  for (auto& w : over) w.tell(nullptr, failure);
}

void task_links::dial(const std::shared_ptr<dialled_task>& d) {
  entry& e = *d->at;
  std::shared_ptr<channel> old;
  std::vector<waiting> over;
  bool anyone = false;
  {
    std::lock_guard lock(e.guard);
    const auto left = std::stable_partition(
        e.waiting.begin(), e.waiting.end(),
        [&](const waiting& w) { return !stopped_ && !w.given_up.stop_requested(); });
    over.assign(std::move_iterator(left), std::move_iterator(e.waiting.end()));
    e.waiting.erase(left, e.waiting.end());
    anyone = e.dialling = !e.waiting.empty();
    if (anyone) {
      d->turn_ends =
          std::min(deadline_in(d->turn), std::ranges::max(e.waiting, {}, &waiting::until).until);
      old = std::move(e.channel);
    }
  }
  for (auto& w : over) w.tell(nullptr, stopped_error_);
  if (!anyone) return;
  if (old) old->notice_loss();
  old.reset();
  channel_events events;
  events.on_message = on_message_;
  events.on_lost = [task = d->task, f = on_lost_, weak = std::weak_ptr(d->at)](const error& why) {
    if (const auto of = weak.lock()) {
      std::lock_guard guard(of->guard);
      of->why_lost = why.message();
    }
    if (f) f(task, why);
  };
  channels_.dial(
      d->address, d->turn_ends, std::move(events),
      [this, d](std::shared_ptr<channel> c, std::shared_ptr<const error> failure) {
        on_dialled(d, std::move(c), std::move(failure));
      },
      to_string(*d->task));
}

/// Either `c` or `failure` is null.
void task_links::on_dialled(const std::shared_ptr<dialled_task>& d, std::shared_ptr<channel> c,
                            std::shared_ptr<const error> failure) {
  using namespace std::chrono_literals;
  entry& e = *d->at;
  const auto now = std::chrono::steady_clock::now();
  auto missing_since = now;
  bool ended = false, log = false;
  std::vector<waiting> over;
  std::string why_lost;  // no reason if there is no memory for it
  bool again = false;
  {
    std::lock_guard lock(e.guard);
    if (c) e.channel = c;
    if (c && !c->lost()) e.why_lost.clear();
    (void)failure_of([&] { why_lost = e.why_lost; });
    over.swap(e.waiting);
    const bool missing = failure && is_missing(*failure);
    if (missing && !over.empty()) {
      // Callers that try for a moment, one after the other, wait for the same.
      const auto since = std::ranges::min(over, {}, &waiting::since).since;
      if (e.last_tried + 5s < since) e.missing_since = since, e.log_next = since + 1s;
      e.last_tried = now;
      missing_since = e.missing_since;
    } else {
      e.last_tried = {};
    }
    ended = missing && e.ended;
    if (missing && !ended && !stopped_) {
      const auto left = std::stable_partition(over.begin(), over.end(),
                                              [&](const waiting& w) { return now >= w.until; });
      if (const auto worse = failure_of(
              [&] { e.waiting.assign(std::move_iterator(left), std::move_iterator(over.end())); }))
        failure = worse;
      else
        over.erase(left, over.end());
    }
    again = e.dialling = !e.waiting.empty();
    log = again && now >= e.log_next;
    if (log) e.log_next = now + 10s;
  }
  const auto failure_since = [&](std::chrono::steady_clock::time_point since) {
    if (ended) return std::make_shared<const error>(ended_error(*d->task));
    const bool late = failure->reason() == error_reason::connect_timeout;
    const std::string text =
        late ? timeout_message(d->address, d->turn_ends - since, failure->message())
             : failure->message();
    return std::make_shared<const error>(
        late ? errc::deadline_exceeded : failure->code(), failure->reason(),
        str(*d->task, ": ", text, why_lost.empty() ? "" : "; ", why_lost));
  };
  const auto failure_for = [&](const waiting& w) -> std::shared_ptr<const error> {
    if (stopped_) return stopped_error_;
    if (failure) return failure_since(w.since);
    if (!w.incarnation || w.incarnation == c->peer().incarnation) return nullptr;
    return make_failure(errc::aborted, *d->task, " at ", d->address, " has restarted");
  };
  if (stopped_ && c) c->close();
  for (auto& w : over) {
    std::shared_ptr<const error> why;
    if (auto worse = failure_of([&] { why = failure_for(w); })) why = std::move(worse);
    w.tell(why ? nullptr : c, why);
  }
  if (!again) return;
  if (log)
    (void)failure_of([&] {
      logging::warning("still waiting for ", *d->task, " at ", d->address, ", for ",
                       duration_text(now - missing_since), ": ", failure->message(),
                       why_lost.empty() ? "" : "; ", why_lost);
    });
  d->turn = std::min<std::chrono::nanoseconds>(2 * d->turn, 1s);
  or_fail_all(e, [&] { dial(d); });
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
        if (failure) {
          failures_ += str(failures_.empty() ? "" : "; ", failure->message());
          reason_ = failure->reason();
        }
        failure =
            failures_.empty() ? nullptr : std::make_shared<const error>(late_, reason_, failures_);
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
  std::string failures_;
  error_reason reason_ = error_reason::none;  ///< of the last one
};

}  // namespace

void task_links::when_reached(
    const std::vector<placement>& tasks, const reach_options& options, std::stop_token given_up,
    const std::function<void(placement, const std::shared_ptr<channel>&)>& reached,
    std::function<void(std::shared_ptr<const error>)> then) {
  if (tasks.empty()) return then(nullptr);
  const deadline patience = deadline_in(options.patience);
  const bool patient = patience <= options.until;
  const auto all = std::make_shared<reached_tasks>(
      tasks.size(), patient ? errc::unavailable : errc::deadline_exceeded, std::move(then));
  for (auto t : tasks)
    when_linked(
        t, patient ? patience : options.until, 0, given_up,
        [all, t, reached](const std::shared_ptr<channel>& c, std::shared_ptr<const error> failure) {
          if (!failure) reached(t, c);
          all->add(std::move(failure));
        });
}

std::shared_ptr<channel> task_links::wait_for(placement task, deadline until) {
  check_running();
  channels_.poll();  // notices a channel that has ended
  const auto link = std::make_shared<awaited<std::shared_ptr<channel>>>();
  std::stop_source given_up;
  when_linked(task, until, 0, given_up.get_token(),
              [this, link](std::shared_ptr<channel> c, std::shared_ptr<const error> failure) {
                link->provide(&channels_, std::move(failure), std::move(c));
              });
  channels_.wait_until([&] { return link->over() || stopped_ || interrupted_; });
  given_up.request_stop();
  check_running();
  return link->get();
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

}  // namespace deft::ext
