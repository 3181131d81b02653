// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/simulated/queue.ipp: streams of simulated GPUs.
#pragma once
#include <chrono>
#include <deft/core/thread.hpp>
#include <deft/kernels/gpu/simulated/memory.hpp>
#include <deft/kernels/gpu/simulated/queue.hpp>
#include <random>

namespace deft::ext::gpu::simulated {

void simulation::hold() {
  std::lock_guard lock(guard_);
  held_ = true;
}
void simulation::go_on() {
  {
    std::lock_guard lock(guard_);
    held_ = false;
  }
  changed_.notify_all();
}
void simulation::pass() {
  std::unique_lock lock(guard_);
  changed_.wait(lock, [&] { return !held_; });
}
simulation& simulated_gpus() {
  static auto& s = *new simulation;
  return s;
}

void event::when_done(std::function<void()> f) {
  ++simulated_gpus().waits;
  {
    std::lock_guard lock(guard_);
    if (!done_) return callbacks_.push_back(std::move(f));
  }
  f();
}
void event::synchronize() {
  not_while_queueing("waits for the device");
  ++simulated_gpus().blocked;
  wait();
}
void event::wait() {
  std::unique_lock lock(guard_);
  changed_.wait(lock, [&] { return done_.load(); });
}
void event::set() {
  std::vector<std::function<void()>> callbacks;
  {
    std::lock_guard lock(guard_);
    done_ = true;
    callbacks.swap(callbacks_);
  }
  changed_.notify_all();
  for (auto& f : callbacks) f();
}

queue::~queue() {
  if (!thread_.joinable()) return;
  push({});
  thread_.join();
}
void queue::push(std::function<void()> work) {
  {
    std::lock_guard lock(guard_);
    work_.push_back(std::move(work));
    if (!thread_.joinable()) thread_ = start_thread([this] { run(); });
  }
  changed_.notify_one();
}
std::shared_ptr<event> queue::record() {
  auto e = std::make_shared<event>();
  push([e] { e->set(); });
  return e;
}
void queue::run() {
  static std::atomic<unsigned> seed{1};
  std::minstd_rand dice(seed++);
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(guard_);
      changed_.wait(lock, [&] { return !work_.empty(); });
      work = std::move(work_.front());
      work_.pop_front();
    }
    if (!work) return;
    simulation& test = simulated_gpus();
    test.pass();
    // Nobody waits for this: it only makes other orders of events likely.
    if (const int most = test.longest_us)
      std::this_thread::sleep_for(
          std::chrono::microseconds(std::uniform_int_distribution(0, most)(dice)));
    work();
  }
}

}  // namespace deft::ext::gpu::simulated
