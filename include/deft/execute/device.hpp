// SPDX-License-Identifier: Apache-2.0
// deft/execute/device.hpp: the device concept: memory, copies, kernels, and when they are done.
#pragma once
#include <deft/device/info.hpp>
#include <deft/execute/arena.hpp>
#include <deft/execute/kernel.hpp>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace deft {

/// A point in the work of a device.
class device_event {
 public:
  virtual ~device_event() = default;
  /// Whether all work before it is done.
  virtual bool done() const = 0;
  /// Calls `f` once that is so: at once, or from a thread of the device, which it must not hold up.
  virtual void when_done(std::function<void()> f) = 0;
  /// Waits for it. For tests and set-up: steps park instead.
  virtual void synchronize() = 0;
};
/// Null where the work was done before the event was recorded.
using event_ptr = std::shared_ptr<device_event>;

/// What a device keeps for one frame: above all the word in which its kernels note the first error
/// that only they see. Once it is set, no update of the step changes anything.
class device_step {
 public:
  virtual ~device_step() = default;
  /// A run begins.
  virtual void begin() = 0;
  /// After the work of the run, or the part of it that the host waited for, is done: the first
  /// error, and the item that met it; null if there was none.
  virtual std::shared_ptr<const error> failure(std::uint32_t& item) const = 0;
  /// The run has failed or is to end: what has not begun yet may be left out.
  virtual void stop() {}
  /// Where kernels of the run note errors: the same as long as nothing goes wrong.
  virtual const void* place() const { return nullptr; }
};

/// A kernel to be started.
struct launch_request {
  kernel& what;
  kernel_call call;
  std::uint32_t ins = 0, outs = 0;  ///< lengths of call.in and call.out
  std::uint32_t item = 0;           ///< what an error is filed under
  bool update = false;              ///< it changes what outlives the step
};

/// Launches that a device keeps, to start them all at once.
class launch_graph {
 public:
  virtual ~launch_graph() = default;
};

/// One device of this process. Its kernels run in the order of their launches, those of all frames
/// together: the compute stream. Copies have streams of their own. On the processor everything is
/// done when a call returns.
class device_runtime {
 public:
  virtual ~device_runtime() = default;

  const device_info& info() const { return info_; }

  /// Its work goes on behind the caller's back: copies and launches are queued.
  virtual bool asynchronous() const { return false; }
  /// Where the elements of its values live.
  virtual memory& space() = 0;
  /// What runs take their activations from; devices that share a space share it.
  virtual arena_pool& arenas() = 0;

  /// Copies from the host, to it, or from another device, after all that was launched before; what
  /// is launched later waits for the event by `wait`. `keep` holds the source until it is done; the
  /// other side is the caller's to keep.
  virtual event_ptr copy_in(void* to, const void* from, std::size_t bytes, buffer keep) = 0;
  virtual event_ptr copy_out(void* to, const void* from, std::size_t bytes, buffer keep) = 0;
  /// `done` is null and the result false if there is no way but through the host.
  virtual bool copy_between(void* to, device_runtime& source, const void* from, std::size_t bytes,
                            buffer keep, event_ptr& done) {
    return static_cast<void>(to), static_cast<void>(source), static_cast<void>(from),
           static_cast<void>(bytes), static_cast<void>(keep), done = nullptr, false;
  }
  /// Copies within its space, as a launch for the run that `step` is about, which is left out once
  /// that run has failed. Null: in any case.
  virtual void copy_within(void* to, const void* from, std::size_t bytes, device_step* step) = 0;

  /// The line of its table for an operation; nullptr: it has none.
  virtual const kernel_entry* find_kernel(std::string_view op) const = 0;
  /// The kernel for a node; nullptr if there is none.
  virtual kernel_ptr make_kernel(const node_def& n, std::span<const tensor_type> in) {
    const kernel_entry* entry = find_kernel(n.op->name);
    return entry && entry->make ? entry->make(n, in) : nullptr;
  }
  /// What the frames of this device keep; null where errors are thrown by `launch` at once.
  virtual std::unique_ptr<device_step> make_step() { return nullptr; }
  /// Starts a kernel for the run that `step` is about.
  virtual void launch(const launch_request& r, device_step* step) {
    static_cast<void>(step);
    r.what.run(r.call);
  }
  /// Keeps launches that are not started now; null if the device cannot. They may be started as
  /// long as the kernels are prepared as they are, and as all that the requests point to, the
  /// step's place and `code_version` are what they were.
  virtual std::unique_ptr<launch_graph> capture(std::span<const launch_request> launches,
                                                device_step* step) {
    return static_cast<void>(launches), static_cast<void>(step), nullptr;
  }
  /// Starts what was captured, for that step, in that order.
  virtual void launch(launch_graph& g, device_step* step) {
    static_cast<void>(g), static_cast<void>(step);
  }
  /// Changes when some kernel would be launched in another way than before.
  virtual std::uint64_t code_version() const { return 0; }
  /// The point after everything that was launched so far.
  virtual event_ptr record() { return nullptr; }
  /// What is launched from now on runs after `e`, whichever device recorded that.
  virtual void wait(const event_ptr& e) {
    if (e) e->synchronize();
  }

 protected:
  explicit device_runtime(device_info info) : info_(std::move(info)) {}
  device_info info_;
};

/// The kernels of some tables by the names of their operations.
class kernel_index {
 public:
  explicit kernel_index(std::span<const kernel_table> tables);
  /// Null if there is none.
  const kernel_entry* find(std::string_view op) const;

 private:
  std::unordered_map<std::string_view, const kernel_entry*> by_name_;
};

/// The kernels of a table, and what the executor runs itself on every device: as a device announces
/// them.
std::shared_ptr<const kernel_set> announce(std::span<const kernel_table> tables);

/// Waits until everything that was launched on `d` is done. For tests and set-up.
void synchronize(device_runtime& d);

}  // namespace deft
