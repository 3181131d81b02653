// SPDX-License-Identifier: Apache-2.0
// deft/transport/event_loop.ipp: which thread runs an Asio context, and when.
#pragma once
#include <algorithm>
#include <deft/core/log.hpp>
#include <deft/core/thread.hpp>
#include <deft/transport/event_loop.hpp>
#include <thread>

namespace deft::detail {

namespace {
using namespace std::chrono_literals;
/// How often the keeper checks that polling threads still poll, and that sleeping ones still run
/// the loop.
constexpr auto look_at_polling = 10ms, look_at_sleeping = 100ms;
thread_local bool this_is_a_keeper = false;
}  // namespace

event_loop& event_loop::of_servers() {
  static auto& loop = *new event_loop(0ms);
  return loop;
}
event_loop& event_loop::of_callers() {
  // Without patience, a thread that makes a call now and then would wait each time until the keeper
  // gives up the loop.
  static auto& loop = *new event_loop(100ms);
  return loop;
}

event_loop::event_loop(std::chrono::milliseconds patience)
    : work_(boost::asio::make_work_guard(context_)), patience_(patience), beat_(context_) {
  start_thread([this] { keep(); }).detach();
}

bool event_loop::is_keeper() { return this_is_a_keeper; }

void event_loop::enter() {
  std::lock_guard lock(guard_);
  ++polling_;
}

void event_loop::leave() {
  std::lock_guard lock(guard_);
  if (--polling_ > 0) return;
  if (patience_ > 0ms) last_polling_ = std::chrono::steady_clock::now();
  if (led_) return;
  if (!sleepers_.empty()) return sleepers_.front()->changed_.notify_one();
  if (upkeeps_ > 0) call_keeper();
}

event_loop::upkeep::upkeep(event_loop& l) : loop_(l) {
  std::lock_guard lock(loop_.guard_);
  if (loop_.upkeeps_++ == 0 && loop_.is_left_alone()) loop_.call_keeper();
}
event_loop::upkeep::~upkeep() {
  std::lock_guard lock(loop_.guard_);
  --loop_.upkeeps_;
}

bool event_loop::is_left_alone() const { return !led_ && polling_ == 0 && sleepers_.empty(); }
void event_loop::call_keeper() {
  wanted_ = true;
  keeper_.notify_one();
}

/// An exception of a handler must not end the thread.
template <class F>
void event_loop::run(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    logging::warning("the handler of a connection's event failed: ", e.what());
  }
}

void event_loop::poll() {
  {
    std::lock_guard lock(guard_);
    polled_ = true;
    if (led_) return;
    led_ = true;
  }
  run([&] { context_.poll(); });
  std::lock_guard lock(guard_);
  led_ = false;
}

void event_loop::sleep(sleeper& s, deadline until) {
  arm_all();
  std::unique_lock lock(guard_);
  --polling_;
  while (!s.woken_ && std::chrono::steady_clock::now() < until) {
    if (!led_ && polling_ == 0) {
      led_ = true;
      leader_ = &s;
      lock.unlock();
      run([&] {
        until == no_deadline ? context_.run_one() : context_.run_one_until(until);
        context_.poll();
      });
      lock.lock();
      led_ = false;
      leader_ = nullptr;
      break;
    }
    // Makes the keeper give up the loop.
    if (keeper_leads_) boost::asio::post(context_, [] {});
    sleepers_.push_back(&s);
    until == no_deadline ? s.changed_.wait(lock)
                         : static_cast<void>(s.changed_.wait_until(lock, until));
    std::erase(sleepers_, &s);
  }
  s.woken_ = false;
  ++polling_;
}

void event_loop::wake(sleeper& s) {
  std::lock_guard lock(guard_);
  s.woken_ = true;
  if (leader_ != &s)
    s.changed_.notify_one();
  else if (!context_.get_executor().running_in_this_thread())
    boost::asio::post(context_, [] {});
}

void event_loop::wake_keeper() {
  std::lock_guard lock(guard_);
  if (is_left_alone()) call_keeper();
}

void event_loop::add_unarmed(std::weak_ptr<loop_member> m) {
  std::lock_guard lock(members_guard_);
  unarmed_.push_back(std::move(m));
}

void event_loop::arm_all() {
  std::vector<std::weak_ptr<loop_member>> all;
  {
    std::lock_guard lock(members_guard_);
    if (unarmed_.empty()) return;
    all.swap(unarmed_);
  }
  for (const auto& weak : all)
    if (const auto m = weak.lock()) m->arm();
}

void event_loop::add_beating(const std::shared_ptr<loop_member>& m) {
  const auto interval = m->beat_interval();
  if (interval == 0ms) return;
  std::lock_guard lock(members_guard_);
  beating_.push_back(m);
  if (interval_ != 0ms && interval_ <= interval) return;
  interval_ = interval;
  boost::asio::post(context_, [this] { schedule_beat(); });
}

void event_loop::schedule_beat() {
  std::lock_guard lock(members_guard_);
  if (interval_ == 0ms) return;
  beat_.expires_after(interval_);
  beat_.async_wait([this](boost::system::error_code failed) {
    if (!failed) beat_all();
  });
}

void event_loop::beat_all() {
  std::vector<std::shared_ptr<loop_member>> all;
  {
    std::lock_guard lock(members_guard_);
    interval_ = 0ms;
    std::erase_if(beating_, [&](const auto& weak) {
      auto m = weak.lock();
      if (!m) return true;
      const auto interval = m->beat_interval();
      if (interval != 0ms && (interval_ == 0ms || interval < interval_)) interval_ = interval;
      all.push_back(std::move(m));
      return false;
    });
  }
  const auto now = std::chrono::steady_clock::now();
  for (const auto& m : all) m->beat(now);
  schedule_beat();
}

void event_loop::keep() {
  this_is_a_keeper = true;
  std::unique_lock lock(guard_);
  for (;;) {
    const bool stuck = polling_ > 0 && !polled_;
    const bool alone = polling_ == 0 && sleepers_.empty();
    const auto now = std::chrono::steady_clock::now();
    const bool patient = alone && !wanted_ && upkeeps_ == 0 && now - last_polling_ < patience_;
    polled_ = wanted_ = false;
    if (!led_ && (stuck || (alone && !patient))) {
      led_ = keeper_leads_ = true;
      lock.unlock();
      arm_all();
      run([&] {
        stuck ? context_.run_one_for(look_at_polling) : context_.run_one();
        context_.poll();
      });
      lock.lock();
      led_ = keeper_leads_ = false;
      if (polling_ == 0 && !sleepers_.empty()) sleepers_.front()->changed_.notify_one();
      if (stuck) continue;
    }
    // Arms the unarmed members, as other threads may poll for long.
    lock.unlock();
    arm_all();
    lock.lock();
    if (!led_ && polling_ == 0 && sleepers_.empty() && !patient) continue;
    keeper_.wait_for(lock, leader_ || patient ? look_at_sleeping : look_at_polling,
                     [&] { return wanted_; });
  }
}

}  // namespace deft::detail
