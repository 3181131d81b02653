// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/simulated/queue.hpp: a thread that works through a queue, as a stream of a GPU
// does, and events in it.
#pragma once
#include <condition_variable>
#include <deft/kernels/device.hpp>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace deft::ext::gpu::simulated {

/// What tests may do to the queues of all simulated GPUs of the process, and count.
struct simulation {
  std::atomic<int> longest_us{0};  ///< random delay before each piece of work
  /// Called before each kernel, on the thread of its GPU's stream: it can take the time that the
  /// kernel would.
  std::atomic<void (*)()> before_kernel{nullptr};
  std::atomic<std::size_t> launches{0}, captures{0}, replays{0}, copies_in{0}, copies_out{0},
      copies_between{0}, allocations{0}, waits{0}, blocked{0};
  void reset_counts() {
    launches = captures = replays = copies_in = copies_out = copies_between = allocations = waits =
        blocked = 0;
  }

  /// Nothing runs while queues are held.
  void hold();
  void go_on();
  void pass();

 private:
  std::mutex guard_;
  std::condition_variable changed_;
  bool held_ = false;
};
simulation& simulated_gpus();

class event final : public device_event {
 public:
  bool done() const override { return done_.load(std::memory_order_acquire); }
  void when_done(std::function<void()> f) override;
  void synchronize() override;
  /// As a stream waits.
  void wait();
  void set();

 private:
  std::mutex guard_;
  std::condition_variable changed_;
  std::atomic<bool> done_{false};
  std::vector<std::function<void()>> callbacks_;
};

/// Work in order, on a thread that is started with the first piece.
class queue {
 public:
  ~queue();
  void push(std::function<void()> work);
  std::shared_ptr<event> record();

 private:
  void run();

  std::mutex guard_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::thread thread_;
};

}  // namespace deft::ext::gpu::simulated
