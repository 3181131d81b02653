// SPDX-License-Identifier: Apache-2.0
// deft/execute/calls.hpp: the state of a node that calls functions: a frame for each of them.
#pragma once
#include <atomic>
#include <deft/execute/frame_state.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace deft::ext::exec {

/// Drives a function's frame: its lanes are run by the lane that has called it.
class frame_state::call_driver final : public step_driver {
 public:
  /// For a frame of so many lanes, none of which can be woken twice before it has run.
  explicit call_driver(std::size_t lanes) {
    ready_.reserve(lanes + 1);
    running_.reserve(lanes + 1);
  }
  /// A run begins, for the lane that `caller` wakes.
  void begin(waker caller) {
    std::lock_guard lock(guard_);
    ready_.clear();
    over_ = false;
    caller_ = std::move(caller);
  }
  void wake(std::uint32_t lane) override {
    waker caller;
    {
      std::lock_guard lock(guard_);
      ready_.push_back(lane);
      caller = caller_;
    }
    caller();
  }
  void ended() override {
    waker caller;
    {
      std::lock_guard lock(guard_);
      over_ = true;
      caller = caller_;
    }
    caller();
  }
  /// Runs the lanes that can go on. Returns whether the run is over.
  bool drive(frame_state& f) {
    for (;;) {
      {
        std::lock_guard lock(guard_);
        if (over_) return true;
        if (ready_.empty()) return false;
        running_.clear();
        running_.swap(ready_);
      }
      for (const std::uint32_t l : running_) f.resume(l);
    }
  }

 private:
  std::mutex guard_;
  std::vector<std::uint32_t> ready_, running_;
  bool over_ = false;
  waker caller_;
};

/// Tells an observer of a function's items, under lanes of their own.
class lane_observer final : public step_observer {
 public:
  step_observer* to = nullptr;
  std::uint32_t first_lane = 0;

  void begin(const node_label& n, std::uint32_t lane) override { to->begin(n, first_lane + lane); }
  void end(const node_label& n, std::uint32_t lane) override { to->end(n, first_lane + lane); }
};

struct frame_state::calling {
  /// Of one function; made when it is called for the first time.
  struct callee {
    std::unique_ptr<frame_state> frame;
    std::unique_ptr<call_driver> driver;
    lane_observer observer;
    std::vector<feed_ref> feeds;  ///< the arguments that it uses
  };

  explicit calling(const call_info& c) : callees(c.functions.size()) {}

  std::vector<callee> callees;
  std::vector<feed_ref> arguments;
  std::optional<step_context> context;  ///< of the function that runs
  std::uint64_t calls = 0;
  std::size_t current = 0;  ///< the function that was called last
  bool active = false;      ///< the item has begun
  bool running = false;     ///< function `current` is waited for
  bool stopped = false;     ///< it was told that the caller has failed
  bool updated = false;     ///< a function may have changed a variable

  void release() {
    arguments.clear();
    for (auto& c : callees) {
      c.feeds.clear();
      if (c.frame) c.frame->release();
    }
  }
};

}  // namespace deft::ext::exec
