// SPDX-License-Identifier: Apache-2.0
// deft/train/coordinator.ipp: the threads, and the first exception.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deft/core/error.hpp>
#include <deft/core/log.hpp>
#include <deft/core/thread.hpp>
#include <deft/graph/graph.hpp>
#include <deft/train/coordinator.hpp>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace deft {

class coordinator::state {
 public:
  void start(std::function<void()> f) {
    const graph g = current_graph();
    std::lock_guard lock(guard_);
    if (joined_)
      ext::fail(errc::failed_precondition,
                "[coordinator] the threads were joined; none can be started");
    threads_.push_back(ext::start_thread([this, g, f = std::move(f)] {
      auto in_graph = as_default(g);
      try {
        f();
      } catch (...) {
        std::lock_guard failing(guard_);
        if (!first_) first_ = std::current_exception();
        stop();
      }
    }));
  }
  void request_stop() {
    std::lock_guard lock(guard_);
    stop();
  }
  bool should_stop() const { return stopping_.load(std::memory_order_acquire); }
  void wait_for_stop() {
    std::unique_lock lock(guard_);
    asked_.wait(lock, [this] { return should_stop(); });
  }
  std::exception_ptr join() {
    for (;;) {
      std::vector<std::thread> ending;
      {
        std::lock_guard lock(guard_);
        ending.swap(threads_);
        joined_ = ending.empty();  // a thread may start another one
        if (joined_) return std::exchange(first_, nullptr);
      }
      for (std::thread& t : ending) t.join();
    }
  }

 private:
  void stop() {
    stopping_.store(true, std::memory_order_release);
    asked_.notify_all();
  }

  std::mutex guard_;
  std::condition_variable asked_;
  std::atomic<bool> stopping_{false};
  bool joined_ = false;
  std::exception_ptr first_;
  std::vector<std::thread> threads_;
};

coordinator::coordinator() : state_(std::make_unique<state>()) {}
coordinator::~coordinator() {
  request_stop();
  try {
    join();
  } catch (const std::exception& e) {
    logging::warning("[coordinator] a thread ended with: ", e.what());
  } catch (...) {
    logging::warning("[coordinator] a thread ended with an exception that is not a std::exception");
  }
}

void coordinator::start(std::function<void()> f) { state_->start(std::move(f)); }
void coordinator::request_stop() { state_->request_stop(); }
bool coordinator::should_stop() const { return state_->should_stop(); }
void coordinator::wait_for_stop() { state_->wait_for_stop(); }
void coordinator::join() {
  if (auto first = state_->join()) std::rethrow_exception(std::move(first));
}

}  // namespace deft
