// SPDX-License-Identifier: Apache-2.0
// deft/execute/executor.hpp: a task's part of a plan, compiled into lanes, and its runs.
#pragma once
#include <deft/core/feed_ref.hpp>
#include <deft/kernels/device.hpp>
#include <deft/plan/cut.hpp>
#include <memory>
#include <string>
#include <vector>

namespace deft::ext {
namespace exec {
class frame_state;
}

/// What a part needs of its task, and the session that it belongs to.
struct task_resources {
  std::span<const std::unique_ptr<device_runtime>> devices;
  resource_store* store = nullptr;
  std::uint64_t session = 0;
  std::string master = {};  ///< the task of the session's master
};

/// What the caller of `start` does when the run can go on or has ended. All functions may be called
/// from any thread, and none may wait for the run.
class step_driver {
 public:
  virtual ~step_driver() = default;
  /// Lane `lane` can go on: schedules a call of frame::resume(lane).
  virtual void wake(std::uint32_t lane) = 0;
  /// The same, if an idle thread can take the lane; false if there is none.
  virtual bool wake_idle(std::uint32_t lane) { return static_cast<void>(lane), false; }
  /// Whether the calling thread has nothing to do but this run: at its end it waits for devices
  /// itself, which is quicker than to be woken.
  virtual bool may_wait() const { return false; }
  /// The run has ended. Called once, unless `start` has returned true.
  virtual void ended() = 0;
};

/// The schedule of a part: lanes of items in order, with resolved kernels and resources.
/// Immutable; what changes during a run is in a frame.
class executable {
 public:
  /// Throws the errors of kernels and resources, with node and source location.
  executable(plan::part part, const task_resources& task);
  ~executable();

  /// The state of one run at a time: values, prepared kernels, buffers that the next run reuses.
  class frame;
  std::unique_ptr<frame> make_frame() const;

  std::span<const transfer> sends() const;
  std::span<const transfer> receives() const;
  /// The numbers of the feeds that it uses, in the order in which a run takes them.
  std::span<const std::uint32_t> feeds() const;
  /// The number of fetches, including those of operations, which yield no value.
  std::size_t fetches() const;
  /// The number of lanes: in-order streams of items.
  std::size_t lanes() const;

  struct compiled;

 private:
  std::unique_ptr<const compiled> compiled_;
};

class executable::frame {
 public:
  explicit frame(const compiled& c);
  ~frame();

  /// Runs to the end on this thread, which waits where lanes wait. `context` must stay valid until
  /// then. Throws the first error with node, source location and device; the frame can be used
  /// again.
  void run(std::span<const feed_ref> feeds, const step_context& context);

  /// Begins a run; every lane runs until it has to wait. Returns true if the run has ended, and
  /// throws as `run` does. False: `driver` is told when lanes can go on and when the run has ended.
  /// Feeds, `context` and `driver` must stay valid until then; another thread may already use the
  /// frame.
  bool start(std::span<const feed_ref> feeds, const step_context& context, step_driver& driver);
  /// Resumes a lane that the driver was told of.
  void resume(std::uint32_t lane);
  /// After the end: the error of the run; null if it succeeded.
  std::shared_ptr<const error> failure() const;
  /// After the end: whether the run may have changed a variable.
  bool has_updated() const;

  /// After the end: the value of fetch `i`, on the host. The frame keeps it; its elements are valid
  /// until the next run or release.
  const any_array& peek(std::size_t i);
  /// The same, but gives the value to the caller: later runs use other elements.
  any_array take(std::size_t i);
  /// Releases the memory that the run still shares: elements of variables, feeds, received values.
  void release();

 private:
  std::unique_ptr<exec::frame_state> state_;
};

}  // namespace deft::ext
