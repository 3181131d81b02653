// SPDX-License-Identifier: Apache-2.0
// deft/session/server/joining.ipp: when a job is done, and which tasks are waited for.
#pragma once
#include <algorithm>
#include <atomic>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/core/log.hpp>
#include <deft/session/server/coordination.hpp>

namespace deft::ext {

/// Tells a task, perhaps on another thread, that this one is done, or serves until others are.
class coordination::done_report {
 public:
  static std::shared_ptr<done_report> begin(const std::shared_ptr<worker>& from,
                                            const device_name& to, bool serves, deadline until) {
    const auto f = std::make_shared<done_report>(to);
    const auto say = [f, weak = std::weak_ptr(from), serves](const std::shared_ptr<channel>& c,
                                                             std::shared_ptr<const error> missing) {
      f->failure_ = std::move(missing);
      if (c)
        f->failure_ = failure_of([&] {
          f->linked_ = true;
          f->answer_ = c->call(wire::pack(wire::done{serves}));
        });
      f->link_ = c;
      f->sent_ = true;
      if (const auto w = weak.lock()) w->channels().notify();
    };
    // Not a link: a worker that does not answer soon need not be waited for.
    if (to.job == "ps")
      from->links().when_linked(intern(to), until, 0, {}, say);
    else
      from->channels().dial(from->cluster().address(to.job, *to.task),
                            std::min(until, deadline_in(attempt)), {}, say, to_string(to));
    return f;
  }
  explicit done_report(device_name to) : to_(std::move(to)) {}
  done_report(const done_report&) = delete;

  const device_name& to() const { return to_; }
  bool over() const { return sent_ && (failure_ || answer_->done()); }
  /// Why it was not told; null if it was. Once it is over.
  std::shared_ptr<const error> failure() const {
    return failure_ ? failure_ : failure_of([&] { answer_->get(); });
  }
  /// Whether to try again: there was a connection that was lost before the answer, or an attempt to
  /// reach a worker has failed.
  bool lost() const {
    if (!over() || (!linked_ && to_.job == "ps")) return false;
    const auto why = failure();
    return why && why->code() == errc::unavailable;
  }

 private:
  /// Too short to be logged: it does not matter if a worker is not there.
  static constexpr auto attempt = std::chrono::milliseconds(900);

  const device_name to_;
  bool linked_ = false;
  std::shared_ptr<channel> link_;
  std::shared_ptr<pending> answer_;
  std::shared_ptr<const error> failure_;
  std::atomic<bool> sent_{false};
};

void coordination::done(std::chrono::nanoseconds timeout) {
  const deadline until = deadline_in(timeout);
  const auto is_done = [this](const device_name& n) {
    std::lock_guard lock(guard_);
    return members_.at(to_string(n)).done;
  };
  {
    std::lock_guard lock(guard_);
    members_.at(to_string(worker_->task().name())).done = true;
  }
  std::vector<std::shared_ptr<done_report>> all;
  for (const auto& n : worker_->cluster().task_names())
    if (n != worker_->task().name() && !is_done(n))
      all.push_back(done_report::begin(worker_, n, false, until));
  const auto over = [&](const auto& f) { return f->over() || is_done(f->to()); };
  const auto lost = [&](const auto& f) {
    return f->lost() && !is_done(f->to()) && clock::now() < until;
  };
  // Waits for the answers, as this process could end before the messages are sent. A parameter
  // server that was not told would wait for ever for a task that it has never seen.
  while (worker_->channels().wait_until(
             [&] { return std::ranges::all_of(all, over) || std::ranges::any_of(all, lost); },
             until) &&
         std::ranges::any_of(all, lost))
    for (auto& f : all)
      if (lost(f))
        f = done_report::begin(worker_, f->to(), false,
                               std::min(until, deadline_in(task_links::reconnect_time)));
  {
    // Their connections stay: the end of one is a loss for steps that wait for values of this task.
    std::lock_guard lock(guard_);
    done_reports_.insert(done_reports_.end(), all.begin(), all.end());
  }
  for (const auto& f : all)
    if (const auto failure = f->over() ? f->failure() : nullptr; failure || !f->over())
      if (f->to().job == "ps")
        logging::info(f->to(), " was not told that this task is done: ",
                      failure ? std::string(failure->what())
                              : str("no answer within ", duration_text(timeout)));
}

bool coordination::is_done() const {
  std::lock_guard lock(guard_);
  return members_.at(to_string(worker_->task().name())).done;
}

void coordination::join() {
  struct counted {
    coordination& of;
    explicit counted(coordination& c) : of(c) {
      if (of.joining_++ == 0) of.joined_ = clock::now();
    }
    ~counted() { --of.joining_; }
  };
  std::unique_lock lock(guard_);
  const counted here(*this);
  const auto over = [this] {
    return stopped_ || interrupted_ || (!awaited_.empty() && job_is_done()) ||
           (ends_at_ != no_deadline && (clock::now() >= ends_at_ || !needed()));
  };
  while (!over()) {
    check_lost();
    // Both may release the lock, and what is notified meanwhile wakes nobody.
    log_missing(lock);
    if (!is_ps_) tell_that_it_serves(lock);
    if (over()) return;
    changed_.wait_until(lock, std::min(next_look(), ends_at_));
  }
}

bool coordination::end_join(std::chrono::nanoseconds patience) {
  {
    std::lock_guard lock(guard_);
    if (!is_ps_ && joining_ == 0) return false;
    ends_at_ = deadline_in(patience);
  }
  changed_.notify_all();
  return true;
}

/// A worker that serves need not wait for others that do, but for one that has ended the job.
bool coordination::job_is_done() const {
  bool any = false, all = true;
  for (const auto& name : awaited_) {
    const member& m = members_.at(name);
    any |= m.done && m.answered;
    all &= (m.done && m.answered) || (!is_ps_ && m.serves);
  }
  return any && all;
}

/// Whether a worker is connected that is not done.
bool coordination::needed() const {
  return std::ranges::any_of(awaited_, [&](const std::string& name) {
    const member& m = members_.at(name);
    return m.connections > 0 && !(m.done && m.answered) && !m.serves;
  });
}

/// Whether it is waited for and not connected. A worker that serves waits for no other that does.
bool coordination::is_missing(const member& m) const {
  return m.connections == 0 && !m.done && (is_ps_ || !m.serves);
}

namespace {
constexpr auto long_absence = std::chrono::seconds(10);
}  // namespace

void coordination::check_lost() const {
  std::string names;
  for (const auto& name : awaited_) {
    const member& m = members_.at(name);
    if (!is_missing(m) || !m.seen || clock::now() - m.lost < away_) continue;
    names += str(names.empty() ? "" : "; ", name, " was lost and has not come back for ",
                 duration_text(away_), m.why_lost.empty() ? "" : ": ", m.why_lost);
  }
  if (!names.empty())
    fail(errc::unavailable, "[server] ", worker_->task().name(), " ends before its job: ", names);
}

/// When a lost worker is given up, or a missing one is to be logged.
coordination::clock::time_point coordination::next_look() const {
  auto next = clock::now() +
              (is_ps_ || done_reports_.empty() ? std::chrono::hours(1) : std::chrono::seconds(1));
  for (const auto& name : awaited_) {
    const member& m = members_.at(name);
    if (!is_missing(m)) continue;
    if (!m.missed) next = std::min(next, (m.seen ? m.lost : joined_) + long_absence);
    if (m.seen) next = std::min(next, later(m.lost, away_));
  }
  return next;
}

void coordination::log_missing(std::unique_lock<std::mutex>& lock) {
  std::string names;
  for (const auto& name : awaited_) {
    member& m = members_.at(name);
    if (!is_missing(m) || m.missed) continue;
    if (clock::now() - (m.seen ? m.lost : joined_) < long_absence) continue;
    m.missed = true;
    names += str(names.empty() ? "" : ", ", name, m.seen ? ", which was lost" : "");
  }
  if (names.empty()) return;
  lock.unlock();
  logging::warning(worker_->task().name(), " is still waiting for ", names);
  lock.lock();
}

/// Once a worker is done: the others may wait for this one.
void coordination::tell_that_it_serves(std::unique_lock<std::mutex>& lock) {
  const auto done = [&](const std::string& name) { return members_.at(name).done; };
  if (std::ranges::none_of(awaited_, done)) return;
  std::vector<std::shared_ptr<done_report>> failed;  // destroyed without the lock
  std::erase_if(done_reports_, [&](const auto& f) {
    if (!f->over() || !f->failure()) return false;
    members_.at(to_string(f->to())).told = false;
    failed.push_back(f);
    return true;
  });
  std::vector<device_name> others;
  for (const auto& name : awaited_)
    if (member& m = members_.at(name); !m.done && !std::exchange(m.told, true))
      others.push_back(parse_device(name));
  lock.unlock();
  failed.clear();
  std::vector<std::shared_ptr<done_report>> told;
  for (const auto& n : others)
    told.push_back(done_report::begin(worker_, n, true, deadline_in(std::chrono::minutes(1))));
  lock.lock();
  done_reports_.insert(done_reports_.end(), told.begin(), told.end());
}

}  // namespace deft::ext
