// SPDX-License-Identifier: Apache-2.0
// deft/session/server/coordination.ipp: signals, and what is known of the other tasks.
#pragma once
#include <algorithm>
#include <deft/core/duration.hpp>
#include <deft/core/failure.hpp>
#include <deft/session/server/coordination.hpp>

namespace deft::ext {
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
    : worker_(std::move(self)), away_(away), is_ps_(worker_->task().name().job == "ps") {
  for (const auto& n : worker_->cluster().task_names()) members_[to_string(n)];
  for (const auto& n : worker_->cluster().workers())
    if (n != worker_->task().name()) awaited_.push_back(to_string(n));
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
  bool is_other = false;
  {
    std::lock_guard lock(guard_);
    const auto at = members_.find(c.peer().name);
    if (at == members_.end()) return;
    member& m = at->second;
    ++m.connections;
    m.seen = true;
    m.missed = false;
    is_other = std::exchange(m.incarnation, c.peer().incarnation) != c.peer().incarnation;
    if (is_other) m.done = m.answered = m.serves = m.told = false;
  }
  if (is_other) worker_->links().note_end(intern(parse_device(c.peer().name)), false);
}

void coordination::on_close(const std::shared_ptr<connection>& c, const error* why) {
  {
    std::lock_guard lock(guard_);
    const auto at = members_.find(c->peer().name);
    if (at != members_.end() && at->second.connections && --at->second.connections == 0) {
      at->second.lost = clock::now();
      // Without memory it is lost without a reason.
      (void)failure_of([&] { at->second.why_lost = why ? why->message() : std::string(); });
    }
    std::erase_if(waiting_, [&](const auto& w) { return w.second.from() == c; });
  }
  changed_.notify_all();
}

void coordination::on_wait(const wire::caller& from, wire::wait_signal&& m) {
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
  signal(m.name);
  if (from.id()) from.answer(wire::nothing());
}

void coordination::on_done(const wire::caller& from, wire::done&& m) {
  const std::string& name = from.from()->peer().name;
  const auto at = members_.find(name);
  {
    std::lock_guard lock(guard_);
    at->second.seen = true;
    (m.serves ? at->second.serves : at->second.done) = true;
  }
  if (!m.serves) worker_->links().note_end(intern(parse_device(name)), true);
  // Before join() returns, as this process could end before the answer is sent.
  if (from.id()) from.answer_with([] { return wire::nothing(); });
  {
    std::lock_guard lock(guard_);
    at->second.answered |= at->second.done;
  }
  changed_.notify_all();
}

bool coordination::is_member(const connection& c) const { return members_.contains(c.peer().name); }

}  // namespace deft::ext
