// SPDX-License-Identifier: Apache-2.0
// deft/transport/serving_threads.ipp: scheduling what is ready on threads, with as few wake-ups as
// possible.
#pragma once
#include <algorithm>
#include <atomic>
#include <deft/core/thread.hpp>
#include <deft/transport/serving_threads.hpp>
#include <system_error>
#include <thread>

namespace deft::detail {

namespace {
/// The number of blocking regions that the thread is in; -1 if it is not a serving thread.
thread_local int blocking_depth = -1;
/// The thread is looking for work, and will see what becomes ready.
thread_local bool looks_for_work = false;

constexpr int most_blocked = 256;
constexpr std::size_t taken_alone = 2;
/// How long a thread without work stays, also one that took the place of a blocked one: the kernels
/// of the next step are likely to need it again, and waking one costs less than starting one.
constexpr auto idle_for = std::chrono::seconds(10);
/// After being the only one to rest for `alone_after`, a connection is assumed to stay so; others
/// would then wait for at most `unseen_at_most`.
constexpr auto alone_after = std::chrono::milliseconds(10);
constexpr auto unseen_at_most = std::chrono::microseconds(500);
}  // namespace

serving_threads& serving_threads::instance() {
  static auto& all = *new serving_threads;
  return all;
}

void serving_threads::serve(std::shared_ptr<served> s) {
  std::lock_guard lock(guard_);
  switch (s->state_) {
    case served::state::active:
      s->state_ = served::state::again;
      return;
    case served::state::ready:
    case served::state::again:
      return;
    case served::state::idle:
      break;
  }
  s->state_ = served::state::ready;
  ready_.push(std::move(s));
  // A thread that looks for work takes the first ones itself: to wake another costs more.
  if (!looks_for_work || ready_.size() > taken_alone) call_another();
}

bool serving_threads::has_processor() const {
  const auto asleep = std::count_if(idle_.begin(), idle_.end(), [](auto* t) { return !t->called; });
  return threads_ - blocked_ - static_cast<int>(asleep) < usable_processors();
}

void serving_threads::call_another() {
  // If the keeper runs, the serving threads have not polled for a while.
  const bool keeper = event_loop::is_keeper();
  if (!has_processor() && !keeper) return;
  // The last one to become idle is the likeliest to run the loop, and to be in caches.
  const auto last = std::find_if(idle_.rbegin(), idle_.rend(), [](auto* t) { return !t->called; });
  if (last != idle_.rend()) {
    (*last)->called = true;
    return loop_.wake((*last)->sleeper);
  }
  if (threads_ - blocked_ >= usable_processors() && threads_ >= most_blocked) return;
  try {
    start_thread([this] { run(); }).detach();
    ++threads_;
  } catch (const std::system_error&) {
    // The existing threads carry on.
  }
}

bool serving_threads::others_wait(bool busy) {
  std::lock_guard lock(guard_);
  if (ready_.empty()) return false;
  if (!busy) return true;
  if (!has_processor()) return true;
  call_another();
  return false;
}

void serving_threads::run() {
  blocking_depth = 0;
  event_loop::polling_scope here(loop_);
  std::shared_ptr<served> s;
  while (next(s)) {
    stay_with(s);
    s.reset();
  }
}

bool serving_threads::next(std::shared_ptr<served>& s) {
  const auto give_up = std::chrono::steady_clock::now() + idle_for;
  idle_thread self;
  std::unique_lock lock(guard_);
  for (;;) {
    if (!ready_.empty()) {
      s = ready_.pop();
      s->state_ = served::state::active;
      ++served_;
      return true;
    }
    if (threads_ - blocked_ > usable_processors() + most_spare ||
        std::chrono::steady_clock::now() >= give_up) {
      --threads_;
      return false;
    }
    self.called = false;
    idle_.push_back(&self);
    lock.unlock();
    looks_for_work = true;
    loop_.sleep(self.sleeper, give_up);
    looks_for_work = false;
    lock.lock();
    std::erase(idle_, &self);
  }
}

void serving_threads::stay_with(const std::shared_ptr<served>& s) {
  bool spin;
  {
    std::lock_guard lock(guard_);
    spin = is_one_of_few(*s);
  }
  for (unsigned turn = 0;;) {
    const bool others = serve_while_worth_it(*s, spin, turn);
    s->rest();
    {
      std::lock_guard lock(guard_);
      s->left_at_ = served_;
      if (s->state_ == served::state::again) {
        s->state_ = served::state::active;
        continue;
      }
      s->state_ = served::state::idle;
    }
    if (others || !wait_until_heard(s)) return;
  }
}

bool serving_threads::is_one_of_few(const served& s) const {
  return served_ - s.left_at_ <= static_cast<unsigned>(usable_processors());
}

/// Returns whether it ended because others have to be served.
bool serving_threads::serve_while_worth_it(served& s, bool spin, unsigned& turn) {
  for (;;) {
    const auto done = s.serve();
    const bool some = done != served::work::none;
    if (++turn % (some ? 8 : 32) == 0) {  // polling the loop costs more than serve()
      looks_for_work = true;
      loop_.poll();
      looks_for_work = false;
      if (others_wait(some)) return true;
    }
    if (!spin && done != served::work::some) return false;
    if (!some && !s.look_again(std::chrono::steady_clock::now())) return false;
  }
}

/// Returns whether this thread should serve `s`, which rests, again.
bool serving_threads::wait_until_heard(const std::shared_ptr<served>& s) {
  bool alone = false;
  {
    std::lock_guard lock(guard_);
    if (!ready_.empty()) return false;
    const auto now = std::chrono::steady_clock::now();
    if (std::exchange(last_rested_, s.get()) != s.get()) rests_alone_since_ = now;
    alone = now - rests_alone_since_ > alone_after;
  }
  if (!s->wait_until_heard(alone ? unseen_at_most : std::chrono::microseconds(0))) return false;
  {
    std::lock_guard lock(guard_);
    if (s->state_ != served::state::idle) return false;
    s->state_ = served::state::active;
  }
  s->resume();
  return true;
}

serving_threads::blocking_region::blocking_region()
    : counts_(blocking_depth >= 0 && blocking_depth++ == 0) {
  if (!counts_) return;
  auto& all = instance();
  {
    std::lock_guard lock(all.guard_);
    ++all.blocked_;
    if (!all.ready_.empty()) all.call_another();
  }
  all.loop_.step_out();
  all.loop_.wake_keeper();
}

serving_threads::blocking_region::~blocking_region() {
  if (blocking_depth > 0) --blocking_depth;
  if (!counts_) return;
  auto& all = instance();
  all.loop_.step_in();
  std::lock_guard lock(all.guard_);
  --all.blocked_;
}

}  // namespace deft::detail
