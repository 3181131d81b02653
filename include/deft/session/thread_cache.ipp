// SPDX-License-Identifier: Apache-2.0
// deft/session/thread_cache.ipp: idle threads wait for work for ten seconds before they end.
#pragma once
#include <condition_variable>
#include <deft/core/error.hpp>
#include <deft/session/thread_cache.hpp>
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
    if (threads_ == most) return;  // whoever is done next takes it
    try {
      std::thread([this] { serve(); }).detach();
      ++threads_;
    } catch (const std::system_error&) {
      if (threads_) return;
      work_.pop_back();
      fail(errc::resource_exhausted, "there is no thread left");
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

void run_elsewhere(std::function<void()> f) {
  static auto& cache = *new thread_cache;
  cache.run(std::move(f));
}

}  // namespace deft
