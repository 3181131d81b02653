// SPDX-License-Identifier: Apache-2.0
// deft/execute/executor.hpp: a task's part of a plan, compiled into lanes, and its runs.
#pragma once
#include <deft/core/feed_ref.hpp>
#include <deft/execute/device.hpp>
#include <deft/plan/cut.hpp>
#include <memory>
#include <vector>

namespace deft {
namespace exec {
class frame_state;
}

/// What a part needs of its task.
struct task_resources {
  std::span<const std::unique_ptr<device_runtime>> devices;
  resource_store* store = nullptr;
};

/// Whoever started a run, and what it does when the run goes on or ends. Both may be called from
/// any thread, and neither may wait for the run.
class step_driver {
 public:
  virtual ~step_driver() = default;
  /// Lane `lane` can go on: somebody shall call frame::resume(lane), soon.
  virtual void wake(std::uint32_t lane) = 0;
  /// The same, if a thread that has nothing else to do takes it; false if there is none.
  virtual bool wake_idle(std::uint32_t lane) { return static_cast<void>(lane), false; }
  /// The run has ended: called once, unless `start` said so itself.
  virtual void ended() = 0;
};

/// The schedule of a part: lanes of items in order, with resolved kernels and resources.
/// Immutable; what changes during a run is in a frame.
class executable {
 public:
  /// Throws what kernels and resources object to, with node and place.
  executable(plan::part part, const task_resources& task);
  ~executable();

  /// State of one run at a time: values, kernels as prepared, buffers that the next run reuses.
  class frame;
  std::unique_ptr<frame> make_frame() const;

  std::span<const transfer> sends() const;
  std::span<const transfer> receives() const;
  /// Numbers of the feeds it uses, in the order in which a run takes them.
  std::span<const std::uint32_t> feeds() const;
  /// Fetches of a run, those of operations included, which yield no value.
  std::size_t fetches() const;
  /// In-order streams of items that it was cut into.
  std::size_t lanes() const;

  struct compiled;

 private:
  std::unique_ptr<const compiled> compiled_;
};

class executable::frame {
 public:
  explicit frame(const compiled& c);
  ~frame();

  /// Runs to the end on this thread, which waits where lanes do. `context` is needed until then.
  /// Throws the first error with node, place and device; the frame can be used again.
  void run(std::span<const feed_ref> feeds, const step_context& context);

  /// Begins a run: every lane goes as far as it comes. True: it has ended, or thrown as `run` does.
  /// False: `driver` hears when it goes on and when it has ended, and what it needs must stay until
  /// then; the frame may be in use by another thread already.
  bool start(std::span<const feed_ref> feeds, const step_context& context, step_driver& driver);
  /// Goes on with a lane that the driver was told of.
  void resume(std::uint32_t lane);
  /// After the end: what the run has failed with; null if it was well.
  std::shared_ptr<const error> failure() const;

  /// After the end: the value of fetch `i`, on the host, still the frame's own; its elements are
  /// valid until the next run or release.
  const any_array& peek(std::size_t i);
  /// The same, given away: later runs use other elements.
  any_array take(std::size_t i);
  /// Drops what the run still holds of others: variables' elements, feeds, received values.
  void release();

 private:
  std::unique_ptr<exec::frame_state> state_;
};

}  // namespace deft
