// SPDX-License-Identifier: Apache-2.0
// deft/session/threads/background_work.ipp: threads end after ten idle seconds.
#pragma once
#include <condition_variable>
#include <deft/core/error.hpp>
#include <deft/core/thread.hpp>
#include <deft/session/threads/background_work.hpp>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace deft {
namespace {

class thread_cache {
 public:
  void run(std::function<void()> f) {
    std::lock_guard lock(guard_);
    work_.push_back(std::move(f));
    if (idle_ >= work_.size()) return ready_.notify_one();
    if (threads_ == most) return;  // the next thread to become idle takes it
    try {
      start_thread([this] { serve(); }).detach();
      ++threads_;
    } catch (const std::system_error& e) {
      if (threads_) return;
      work_.pop_back();
      fail(errc::resource_exhausted, "cannot start a thread for background work: ", e.what());
    }
  }

 private:
  static constexpr std::size_t most = 1024;

  void serve() {
    std::unique_lock lock(guard_);
    for (;;) {
      while (!work_.empty()) {
        auto f = std::move(work_.front());
        work_.pop_front();
        lock.unlock();
        f();
        f = nullptr;
        lock.lock();
      }
      ++idle_;
      bool more = ready_.wait_for(lock, std::chrono::seconds(10), [&] { return !work_.empty(); });
      --idle_;
      if (!more) {
        --threads_;
        return;
      }
    }
  }

  std::mutex guard_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> work_;
  std::size_t idle_ = 0, threads_ = 0;
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

}  // namespace deft
