// SPDX-License-Identifier: Apache-2.0
// deft/session/threads/background_work.ipp: threads end after ten idle seconds.
#pragma once
#include <condition_variable>
#include <deft/core/error.hpp>
#include <deft/core/thread.hpp>
#include <deft/session/threads/background_work.hpp>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace deft::ext {
namespace {

/// Work begins in the order in which it came. Only one thread at a time is on its way from sleep:
/// when it takes its work and there is more, it calls the next. So work that is short does not wake
/// a thread each, and work that waits does not hold up what came after it.
class thread_cache {
 public:
  void run(std::function<void()> f) {
    std::unique_lock lock(guard_);
    work_.push_back(std::move(f));
    if (coming_) return;
    try {
      call_another(lock);
    } catch (const std::exception& e) {
      if (threads_ > 0) return;  // the next thread to become idle takes it
      work_.pop_back();
      fail(errc::resource_exhausted, "cannot start a thread for background work: ", e.what());
    }
  }

 private:
  static constexpr std::size_t most = 1024;

  struct idle_thread {
    std::condition_variable changed;
    bool called = false;
  };

  /// Calls or starts a thread, if it can, and unlocks. Throws, with the lock held, if the system
  /// cannot start one.
  void call_another(std::unique_lock<std::mutex>& lock) {
    if (!idle_.empty()) {
      const auto t = std::move(idle_.back());
      idle_.pop_back();
      t->called = coming_ = true;
      lock.unlock();  // or the thread would wake only to wait for it
      t->changed.notify_one();
    } else if (threads_ < most) {
      idle_.reserve(threads_ + 1);
      const auto self = std::make_shared<idle_thread>();
      start_thread([this, self] { serve(self); }).detach();
      ++threads_;
      coming_ = true;
      lock.unlock();
    }
  }

  void serve(const std::shared_ptr<idle_thread>& self) {
    std::unique_lock lock(guard_);
    for (;;) {
      coming_ = false;
      while (!work_.empty()) {
        auto f = std::move(work_.front());
        work_.pop_front();
        if (!work_.empty() && !coming_) try {
            call_another(lock);
          } catch (const std::exception&) {
            // The threads there are carry on.
          }
        if (lock.owns_lock()) lock.unlock();
        f();
        f = nullptr;
        lock.lock();
      }
      self->called = false;
      idle_.push_back(self);
      if (self->changed.wait_for(lock, std::chrono::seconds(10), [&] { return self->called; }))
        continue;
      std::erase(idle_, self);
      --threads_;
      return;
    }
  }

  std::mutex guard_;
  std::deque<std::function<void()>> work_;
  std::vector<std::shared_ptr<idle_thread>> idle_;  ///< the last one is the likeliest in caches
  std::size_t threads_ = 0;
  bool coming_ = false;  ///< a thread was called or started, and has not looked for work yet
};

}  // namespace

struct background_work::count {
  std::mutex guard;
  std::condition_variable changed;
  std::size_t under_way = 0;

  /// The owner whose work this thread runs; null if none.
  static const count*& here() {
    thread_local const count* c = nullptr;
    return c;
  }
  void begin() {
    std::lock_guard lock(guard);
    ++under_way;
  }
  void end() {
    std::lock_guard lock(guard);
    --under_way;
    changed.notify_all();
  }
};

background_work::token::~token() {
  if (count_) count_->end();
}
background_work::token& background_work::token::operator=(token&& o) noexcept {
  std::swap(count_, o.count_);
  return *this;
}

background_work::token background_work::begin() {
  count_->begin();
  return token(count_);
}

background_work::background_work() : count_(std::make_shared<count>()) {}

void background_work::run(std::function<void()> f) {
  static auto& cache = *new thread_cache;
  count_->begin();
  try {
    cache.run([c = count_, f = std::move(f)]() mutable {
      count::here() = c.get();
      f();
      f = nullptr;  // destroys what it holds
      count::here() = nullptr;
      c->end();
    });
  } catch (...) {
    count_->end();
    throw;
  }
}

void background_work::wait() const {
  const std::size_t own = count::here() == count_.get();
  std::unique_lock lock(count_->guard);
  count_->changed.wait(lock, [&] { return count_->under_way <= own; });
}

}  // namespace deft::ext
