// SPDX-License-Identifier: Apache-2.0
// deft/session/threads/watchdog.ipp: the thread that checks deadlines; it sleeps while there are
// none.
#pragma once
#include <condition_variable>
#include <deft/core/thread.hpp>
#include <deft/session/threads/watchdog.hpp>
#include <mutex>
#include <thread>
#include <vector>

namespace deft::ext {

class watchdog {
 public:
  static watchdog& here() {
    static auto& w = *new watchdog;
    return w;
  }

  void add(watched* w) {
    std::lock_guard lock(guard_);
    w->after_ = first_;
    if (first_) first_->before_ = w;
    first_ = w;
    if (!begun_) {
      start_thread([this] { run(); }).detach();
      begun_ = true;
    }
    if (asleep_) wake_.notify_one();
  }
  void remove(watched* w) {
    std::lock_guard lock(guard_);
    (w->before_ ? w->before_->after_ : first_) = w->after_;
    if (w->after_) w->after_->before_ = w->before_;
  }

 private:
  static constexpr auto interval = std::chrono::milliseconds(2);
  static constexpr int idle_rounds = 500;  // a run may come soon, and waking a thread costs more

  [[noreturn]] void run() {
    std::unique_lock lock(guard_);
    for (int idle = 0;;) {
      idle = first_ ? 0 : idle + 1;
      if (idle > idle_rounds) {
        asleep_ = true;
        wake_.wait(lock, [&] { return first_ != nullptr; });
        asleep_ = false;
      }
      auto now = std::chrono::steady_clock::now();
      std::vector<std::stop_source> late;
      for (watched* w = first_; w; w = w->after_)
        if (now >= w->until_ && !w->late_) {
          w->late_ = true;
          late.push_back(w->stop_);
        }
      lock.unlock();
      // Without the lock, as a callback may destroy a watched.
      for (auto& stop : late) stop.request_stop();
      std::this_thread::sleep_for(interval);
      lock.lock();
    }
  }

  std::mutex guard_;
  std::condition_variable wake_;
  watched* first_ = nullptr;
  bool begun_ = false, asleep_ = false;
};

watched::watched(deadline until, const std::stop_token& cancel, const std::stop_token& closed)
    : until_(until), on_cancel_(cancel, forward{stop_}), on_close_(closed, forward{stop_}) {
  if (until_ != no_deadline) watchdog::here().add(this);
}
watched::~watched() {
  if (until_ != no_deadline) watchdog::here().remove(this);
}

}  // namespace deft::ext
