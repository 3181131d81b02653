// SPDX-License-Identifier: Apache-2.0
// deft/execute/lane_gate.hpp: lets a lane wait for a waker.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deft/execute/executor.hpp>
#include <mutex>
#include <thread>

namespace deft::ext::exec {

/// Each lane of a frame that may wait has one. A wake-up that comes while the lane still runs is
/// remembered until the lane waits; wake-ups of earlier runs are rejected.
class lane_gate final : public waker::target {
 public:
  explicit lane_gate(std::uint32_t lane) : lane_(lane) {}

  void open(std::uint64_t run, step_driver& driver) {
    std::lock_guard lock(guard_);
    run_ = run;
    driver_ = &driver;
    woken_ = parked_ = false;
  }
  /// The run is over.
  void close() {
    std::lock_guard lock(guard_);
    driver_ = nullptr;
  }
  /// From here on a wake-up counts.
  void listen() {
    std::lock_guard lock(guard_);
    woken_ = false;
  }
  /// Returns false if there was a wake-up. True: the next wake-up resumes the lane, on any thread.
  bool park() {
    std::lock_guard lock(guard_);
    if (woken_) return woken_ = false;
    return parked_ = true;
  }
  bool wake(std::uint64_t run) override {
    return wake_if([&] { return run == run_; });
  }
  bool is_over(std::uint64_t run) override {
    std::lock_guard lock(guard_);
    return !driver_ || run != run_;
  }
  /// Wakes the lane, whatever its run.
  void interrupt() {
    wake_if([] { return true; });
  }
  std::uint64_t run() const { return run_; }

 private:
  template <class F>
  bool wake_if(F meant) {
    step_driver* driver = nullptr;
    {
      std::lock_guard lock(guard_);
      if (!driver_ || !meant()) return false;
      if (!parked_) return woken_ = true;
      parked_ = false;
      driver = driver_;  // stays: the run cannot end before this lane goes on
    }
    driver->wake(lane_);
    return true;
  }

  const std::uint32_t lane_;
  std::mutex guard_;
  std::uint64_t run_ = 0;
  step_driver* driver_ = nullptr;  ///< null between runs
  bool woken_ = false, parked_ = false;
};

/// Waits on the calling thread for lanes that wait, and runs them there.
class blocking_driver final : public step_driver {
 public:
  /// For a frame of so many lanes, none of which can be woken twice before it has run.
  explicit blocking_driver(std::size_t lanes) {
    for (auto* list : {&ready_, &running_}) list->reserve(lanes + 1);  // and its end
  }
  void wake(std::uint32_t lane) override {
    std::lock_guard lock(guard_);
    ready_.push_back(lane);
    wake_up();
  }
  bool wake_idle(std::uint32_t lane) override {
    std::lock_guard lock(guard_);
    if (!idle_) return false;
    ready_.push_back(lane);
    wake_up();
    return true;
  }
  bool may_wait() const override { return std::this_thread::get_id() == thread_; }
  void ended() override {
    std::lock_guard lock(guard_);
    over_ = true;
    wake_up();
  }
  /// Until the run of `f` has ended.
  void drive(executable::frame& f) {
    std::unique_lock lock(guard_);
    for (;;) {
      idle_ = true;
      if (!over_ && ready_.empty()) {
        // A wake-up costs more than most waits last.
        lock.unlock();
        spin();
        lock.lock();
      }
      changed_.wait(lock, [&] { return over_ || !ready_.empty(); });
      if (over_) return;
      idle_ = woken_ = false;
      running_.clear();
      running_.swap(ready_);
      lock.unlock();
      for (auto l : running_) f.resume(l);
      lock.lock();
    }
  }

 private:
  void wake_up() {
    woken_.store(true, std::memory_order_release);
    changed_.notify_one();
  }
  void spin() const {
    constexpr auto patience = std::chrono::microseconds(20);
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!woken_.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
  }

  const std::thread::id thread_ = std::this_thread::get_id();
  std::mutex guard_;
  std::condition_variable changed_;
  std::vector<std::uint32_t> ready_, running_;
  bool over_ = false, idle_ = false;
  std::atomic<bool> woken_{false};
};

}  // namespace deft::ext::exec
