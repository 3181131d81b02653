// SPDX-License-Identifier: Apache-2.0
// deft/session/server/client_sessions.ipp: the sessions, plans and runs of clients.
#pragma once
#include <algorithm>
#include <deft/core/failure.hpp>
#include <deft/session/server/client_sessions.hpp>
#include <deft/session/wire/values.hpp>
#include <deft/transport/handshake.hpp>

namespace deft::ext {

namespace {

std::size_t bytes_of(std::span<const any_array> feeds) {
  std::size_t bytes = 0;
  for (const auto& f : feeds) bytes += f.bytes();
  return bytes;
}

}  // namespace

bool client_plan::is_quick(std::span<const any_array> feeds) const {
  return plan_->is_local() && !plan_->waits() && slowness_.load(std::memory_order_relaxed) == 0 &&
         bytes_of(feeds) <= measured_bytes_.load(std::memory_order_relaxed);
}

void client_plan::start(std::vector<any_array> feeds, const run_options& options,
                        run_callback done) {
  if (plan_->is_local() && !plan_->waits()) return measure(feeds, options, done);
  struct held {
    std::vector<any_array> values;
    std::vector<feed_ref> feeds;
  };
  auto h = std::make_shared<held>();
  h->values = std::move(feeds);
  h->feeds = feeds_of(h->values);
  plan_->start(h->feeds, options,
               [h, done = std::move(done)](run_outcome o) { done(std::move(o)); });
}

void client_plan::measure(std::span<const any_array> feeds, const run_options& options,
                          const run_callback& done) {
  // Passing a run to another thread takes up to 100 µs; a longer run delays the next messages.
  constexpr auto quick = std::chrono::microseconds(200);
  const auto begin = std::chrono::steady_clock::now();
  run_outcome o;
  run_options numbered = options;
  numbered.step = &o.step;
  o.failure = failure_of([&] { o.results.emplace(plan_->run(feeds_of(feeds), numbered)); });
  const bool was_quick = std::chrono::steady_clock::now() - begin < quick;
  const int before = slowness_.load(std::memory_order_relaxed);
  const int now = was_quick ? std::max(before - 1, 0) : 2;
  if (now != before) slowness_.store(now, std::memory_order_relaxed);
  if (const std::size_t bytes = bytes_of(feeds);
      was_quick && bytes > measured_bytes_.load(std::memory_order_relaxed))
    measured_bytes_.store(bytes, std::memory_order_relaxed);
  done(std::move(o));
}

std::uint64_t client_session::keep(std::shared_ptr<ready_plan> plan) {
  auto kept = std::make_shared<client_plan>(std::move(plan));
  std::lock_guard lock(guard_);
  if (plans_.size() >= most_plans)
    fail(errc::resource_exhausted, "a session has at most ", most_plans, " plans");
  plans_.emplace(++last_plan_, std::move(kept));
  return last_plan_;
}

std::shared_ptr<client_plan> client_session::plan(std::uint64_t number) {
  std::lock_guard lock(guard_);
  auto at = plans_.find(number);
  if (at == plans_.end()) fail(errc::not_found, "the session has no plan ", number);
  return at->second;
}

void client_session::drop(std::uint64_t number) {
  std::shared_ptr<client_plan> dropped;  // destroyed without the lock
  std::lock_guard lock(guard_);
  auto at = plans_.find(number);
  if (at != plans_.end()) dropped = std::move(at->second), plans_.erase(at);
}

std::stop_token client_session::begin_run(std::uint64_t id) {
  std::lock_guard lock(guard_);
  return running_[id].get_token();
}

void client_session::cancel_run(std::uint64_t id) {
  std::stop_source run(std::nostopstate);
  {
    std::lock_guard lock(guard_);
    auto at = running_.find(id);
    if (at == running_.end()) return;
    run = at->second;
  }
  run.request_stop();
}

void client_session::end_run(std::uint64_t id) {
  std::lock_guard lock(guard_);
  running_.erase(id);
}

void client_session::note_failure(std::uint64_t id, std::uint64_t step) {
  std::lock_guard lock(guard_);
  failed_.emplace_back(id, step);
  if (failed_.size() > most_failed) failed_.pop_front();
}

std::uint64_t client_session::failed_step(std::uint64_t id) {
  std::lock_guard lock(guard_);
  const auto at = std::ranges::find(failed_, id, &std::pair<std::uint64_t, std::uint64_t>::first);
  return at == failed_.end() ? 0 : at->second;
}

std::uint64_t client_sessions::open(std::shared_ptr<client_session> s) {
  const std::uint64_t id = random_incarnation();
  std::lock_guard lock(guard_);
  check_open();
  if (std::ranges::count_if(all_, [&](const auto& other) {
        return other.second->owner() == s->owner();
      }) >= static_cast<std::ptrdiff_t>(most_of_connection))
    fail(errc::resource_exhausted, "a client has at most ", most_of_connection, " sessions");
  all_.emplace(id, std::move(s));
  return id;
}

std::shared_ptr<client_session> client_sessions::find(std::uint64_t id) {
  std::lock_guard lock(guard_);
  check_open();
  auto at = all_.find(id);
  if (at == all_.end()) fail(errc::not_found, "there is no open session ", id);
  return at->second;
}

bool client_sessions::may_be_owner(std::uint64_t id, const connection* from) {
  std::lock_guard lock(guard_);
  const auto at = all_.find(id);
  return at == all_.end() || at->second->owner() == from;
}
void client_sessions::close(std::uint64_t id) {
  std::shared_ptr<client_session> s;
  {
    std::lock_guard lock(guard_);
    auto at = all_.find(id);
    if (at == all_.end()) return;
    s = std::move(at->second);
    all_.erase(at);
  }
  s->master().close();
}

void client_sessions::close_all_of(const connection* owner) {
  std::vector<std::shared_ptr<client_session>> gone;
  {
    std::lock_guard lock(guard_);
    std::erase_if(all_, [&](auto& s) {
      if (s.second->owner() != owner) return false;
      gone.push_back(s.second);
      return true;
    });
  }
  for (auto& s : gone) s->master().close();
}

void client_sessions::check_open() const {
  if (!stopping_.empty()) fail(errc::unavailable, stopping_, " is stopping");
}

std::vector<std::shared_ptr<client_session>> client_sessions::close(const std::string& task) {
  std::vector<std::shared_ptr<client_session>> all;
  std::lock_guard lock(guard_);
  stopping_ = task;
  for (auto& [id, s] : all_) all.push_back(std::move(s));
  all_.clear();
  return all;
}

}  // namespace deft::ext
