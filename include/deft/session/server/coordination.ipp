// SPDX-License-Identifier: Apache-2.0
// deft/session/server/coordination.ipp: signals, and when a job is done.
#pragma once
#include <algorithm>
#include <atomic>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/session/server/coordination.hpp>

namespace deft {
namespace {

// Limits for the waits of a connection, and bytes of a name.
constexpr std::size_t most_waits = 1'024, longest_name = 256;

void check_name(const std::string& name) {
  if (name.size() > longest_name)
    fail(errc::invalid_argument, "[signal] a name has at most ", longest_name, " bytes, not ",
         name.size());
}

}  // namespace

coordination::coordination(std::shared_ptr<worker> self, std::chrono::nanoseconds away)
    : worker_(std::move(self)), away_(away) {
  for (const auto& n : worker_->cluster().task_names()) members_[to_string(n)];
}

void coordination::signal(const std::string& name) {
  check_name(name);
  std::vector<wire::caller> released;
  {
    std::lock_guard lock(guard_);
    if (signals_.size() == most_signals && !signals_.contains(name))
      fail(errc::resource_exhausted, worker_->task().name(), " has too many signals (limit ",
           most_signals, "): clear_signal() removes one");
    signals_.insert(name);
    auto [begin, end] = waiting_.equal_range(name);
    for (auto i = begin; i != end; ++i) released.push_back(std::move(i->second));
    waiting_.erase(begin, end);
    auto [first, last] = waiting_here_.equal_range(name);
    for (auto i = first; i != last; ++i) *i->second = true;
  }
  changed_.notify_all();
  for (const auto& w : released) w.answer_with([] { return wire::nothing(); });
}

void coordination::clear_signal(const std::string& name) {
  std::lock_guard lock(guard_);
  signals_.erase(name);
}

void coordination::signal(const device_name& task, const std::string& name,
                          std::chrono::nanoseconds timeout) {
  if (task == worker_->task().name()) return signal(name);
  const deadline until = deadline_in(timeout);
  auto c = worker_->links().wait_for(intern(task), until);
  worker_->links().call(*c, wire::pack(wire::set_signal{name}), until, [&] {
    return str("timed out after ", duration_text(timeout), " setting the signal \"", name, "\" on ",
               task);
  });
}

void coordination::wait(const device_name& task, const std::string& name,
                        std::chrono::nanoseconds timeout) {
  const deadline until = deadline_in(timeout);
  auto late = [&] {
    return str("timed out after ", duration_text(timeout), " waiting for the signal \"", name,
               "\" of ", task);
  };
  if (task == worker_->task().name()) {
    std::unique_lock lock(guard_);
    bool set = signals_.contains(name);
    // It may be cleared again before this thread runs.
    const auto here = waiting_here_.emplace(name, &set);
    const bool in_time =
        changed_.wait_until(lock, until, [&] { return stopped_ || interrupted_ || set; });
    waiting_here_.erase(here);
    if (!in_time) fail(errc::deadline_exceeded, late());
    if (stopped_) throw worker_->stopped_error();
    if (interrupted_) throw worker_->interrupted_error();
    return;
  }
  auto c = worker_->links().wait_for(intern(task), until);
  worker_->links().call(*c, wire::pack(wire::wait_signal{name}), until, late);
}

std::size_t coordination::waiting() const {
  std::lock_guard lock(guard_);
  return waiting_.size() + waiting_here_.size();
}

std::vector<task_state> coordination::members() const {
  const auto standing = worker_->links().standing();
  std::vector<task_state> all;
  std::lock_guard lock(guard_);
  for (const auto& n : worker_->cluster().task_names()) {
    const member& m = members_.at(to_string(n));
    const bool connected =
        n == worker_->task().name() || m.connections || standing.contains(intern(n));
    all.push_back({to_string(n), connected, m.done});
  }
  return all;
}

namespace {

/// Tells a parameter server, perhaps on another thread, that a task is done.
class farewell {
 public:
  static std::shared_ptr<farewell> begin(const std::shared_ptr<worker>& from, placement to,
                                         deadline until) {
    const auto f = std::make_shared<farewell>(to);
    from->links().when_linked(
        to, until, 0, {},
        [f, from](const std::shared_ptr<channel>& c, std::shared_ptr<const error> missing) {
          f->failure_ = std::move(missing);
          if (c)
            f->failure_ = failure_of([&] {
              f->linked_ = true;
              f->answer_ = c->call(wire::pack(wire::done{to_string(from->task().name())}));
            });
          f->sent_ = true;
          from->channels().notify();
        });
    return f;
  }
  explicit farewell(placement to) : to_(to) {}

  placement to() const { return to_; }
  bool over() const { return sent_ && (failure_ || answer_->done()); }
  /// Why it was not told; null if it was. Once it is over.
  std::shared_ptr<const error> failure() const {
    return failure_ ? failure_ : failure_of([&] { answer_->get(); });
  }
  /// Whether there was a connection that was lost before the answer.
  bool lost() const {
    if (!over() || !linked_) return false;
    const auto why = failure();
    return why && why->code() == errc::unavailable;
  }

 private:
  const placement to_;
  bool linked_ = false;
  std::shared_ptr<pending> answer_;
  std::shared_ptr<const error> failure_;
  std::atomic<bool> sent_{false};
};

}  // namespace

void coordination::done(std::chrono::nanoseconds timeout) {
  const deadline until = deadline_in(timeout);
  {
    std::lock_guard lock(guard_);
    members_.at(to_string(worker_->task().name())).done = true;
  }
  std::vector<std::shared_ptr<farewell>> all;
  for (const auto& n : worker_->cluster().task_names())
    if (n.job == "ps" && n != worker_->task().name())
      all.push_back(farewell::begin(worker_, intern(n), until));
  const auto over = [](const auto& f) { return f->over(); };
  const auto lost = [](const auto& f) { return f->lost(); };
  // Waits for the answers, as this process could end before the messages are sent. A parameter
  // server that was not told would wait for ever for a task that it has never seen.
  while (worker_->channels().wait_until(
             [&] { return std::ranges::all_of(all, over) || std::ranges::any_of(all, lost); },
             until) &&
         std::ranges::any_of(all, lost))
    for (auto& f : all)
      if (f->lost())
        f = farewell::begin(worker_, f->to(),
                            std::min(until, deadline_in(task_links::reconnect_time)));
  for (const auto& f : all)
    if (const auto failure = f->over() ? f->failure() : nullptr; failure || !f->over())
      logging::info(*f->to(), " was not told that this task is done: ",
                    failure ? std::string(failure->what())
                            : str("no answer within ", duration_text(timeout)));
}

void coordination::join() {
  const bool waits_for_workers =
      worker_->task().name().job == "ps" && worker_->cluster().tasks("worker");
  std::unique_lock lock(guard_);
  while (!stopped_ && !interrupted_) {
    auto look_again = std::chrono::steady_clock::now() + std::chrono::hours(1);
    if (waits_for_workers && all_workers_done(look_again)) return;
    changed_.wait_until(lock, look_again);
  }
}

void coordination::interrupt() {
  {
    std::lock_guard lock(guard_);
    interrupted_ = true;
  }
  changed_.notify_all();
  worker_->links().interrupt(worker_->interrupted_error());
}

void coordination::stop() {
  decltype(waiting_) waiting;
  {
    std::lock_guard lock(guard_);
    stopped_ = true;
    waiting.swap(waiting_);
  }
  changed_.notify_all();
  for (const auto& [name, w] : waiting)
    w.answer_with([&]() -> wire::nothing { throw worker_->stopped_error(); });
}

void coordination::on_open(const connection& c) {
  std::lock_guard lock(guard_);
  const auto at = members_.find(c.peer().name);
  if (at == members_.end()) return;
  member& m = at->second;
  ++m.connections;
  m.seen = true;
  m.done = m.answered = false;
}

void coordination::on_close(const std::shared_ptr<connection>& c) {
  {
    std::lock_guard lock(guard_);
    auto at = members_.find(c->peer().name);
    if (at != members_.end() && at->second.connections && --at->second.connections == 0)
      at->second.lost = std::chrono::steady_clock::now();
    std::erase_if(waiting_, [&](const auto& w) { return w.second.from() == c; });
  }
  changed_.notify_all();
}

void coordination::on_wait(const wire::caller& from, wire::wait_signal&& m) {
  check_member(*from.from());
  check_name(m.name);
  {
    std::lock_guard lock(guard_);
    if (stopped_) throw worker_->stopped_error();
    if (!signals_.contains(m.name)) {
      const auto waits = std::ranges::count_if(
          waiting_, [&](const auto& w) { return w.second.from() == from.from(); });
      if (static_cast<std::size_t>(waits) == most_waits)
        fail(errc::resource_exhausted, from.from()->peer().name, " already waits for ", most_waits,
             " signals of ", worker_->task().name());
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
  const auto at = members_.find(m.task);
  if (at == members_.end()) fail(errc::not_found, "the cluster has no task \"", m.task, "\"");
  {
    std::lock_guard lock(guard_);
    at->second.seen = at->second.done = true;
  }
  // Before join() returns, as this process could end before the answer is sent.
  if (from.id()) from.answer_with([] { return wire::nothing(); });
  {
    std::lock_guard lock(guard_);
    at->second.answered = true;
  }
  changed_.notify_all();
}

/// Signals are kept until they are cleared, so only tasks of the cluster may set them.
void coordination::check_member(const connection& c) const {
  if (!members_.contains(c.peer().name))
    fail(errc::permission_denied,
         "only tasks of the cluster may set signals and wait for them, not \"", c.peer().name,
         "\"");
}

bool coordination::all_workers_done(std::chrono::steady_clock::time_point& look_again) {
  auto now = std::chrono::steady_clock::now();
  look_again = now + std::chrono::hours(1);
  bool all = true;
  for (int i = 0; i < worker_->cluster().tasks("worker"); ++i) {
    const member& m = members_.at(to_string(task_name("worker", i)));
    if (m.done && m.answered) continue;
    if (m.seen && m.connections == 0) {
      const auto given_up = m.lost + away_;
      if (now >= given_up) continue;
      look_again = std::min(look_again, given_up);
    }
    all = false;
  }
  return all;
}

}  // namespace deft
