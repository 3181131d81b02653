// SPDX-License-Identifier: Apache-2.0
// deft/kernels/device.hpp: the device concept: memory, copies, kernels, and when they are done.
#pragma once
#include <algorithm>
#include <deft/device/info.hpp>
#include <deft/kernels/arena.hpp>
#include <deft/kernels/kernel.hpp>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace deft::ext {

/// A point in the work of a device.
class device_event {
 public:
  virtual ~device_event() = default;
  /// Whether all work before the event is done.
  virtual bool done() const = 0;
  /// Calls `f` when that is so: immediately, or from a thread of the device, which `f` must not
  /// block.
  virtual void when_done(std::function<void()> f) = 0;
  /// Blocks until then. For tests and set-up: steps park instead.
  virtual void synchronize() = 0;
};
/// Null where the work was done before the event was recorded.
using event_ptr = std::shared_ptr<device_event>;

/// What a device keeps for one frame, such as the word in which kernels record the first error that
/// only they can detect. Once it is set, updates of the step have no effect.
class device_step {
 public:
  virtual ~device_step() = default;
  /// `name` gives the name of an item's node, on any thread, until the step is destroyed: for
  /// devices that tell of a node when its step is over, in the log or to a later step.
  void name_items(std::function<std::string(std::uint32_t item)> name) { name_ = std::move(name); }
  /// "" if nobody has named the items.
  std::string name_of(std::uint32_t item) const { return name_ ? name_(item) : std::string(); }
  /// A run begins.
  virtual void begin() = 0;
  /// The first error, and the item that caused it; null if there was none. Called when the work of
  /// the run, or the part that the host waited for, is done.
  virtual std::shared_ptr<const error> failure(std::uint32_t& item) const = 0;
  /// The run has failed or was cancelled: work that has not begun may be skipped.
  virtual void stop() {}
  /// After the end of a run that has failed: whether what changes variables may have begun.
  virtual bool has_updated() const { return true; }
  /// Where kernels of the run record errors. Changes only after an error.
  virtual const void* block_address() const { return nullptr; }

 private:
  std::function<std::string(std::uint32_t)> name_;
};

/// A kernel to be started.
struct launch_request {
  kernel& what;
  kernel_call call;
  std::uint32_t ins = 0, outs = 0;  ///< lengths of call.in and call.out
  std::uint32_t item = 0;           ///< reported with an error
  bool update = false;              ///< it changes a variable
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

  /// Whether copies and launches are queued, and run after the call returns.
  virtual bool asynchronous() const { return false; }
  /// The memory of its values.
  virtual memory& space() = 0;
  /// The pool of memory for activations; devices that share a space share the pool.
  virtual arena_pool& arenas() = 0;

  /// Copies from the host, to the host, or from another device, after all earlier launches on this
  /// one. Later launches wait for the returned event by `wait`. `keep` holds the source until the
  /// copy is done; the caller keeps the destination.
  virtual event_ptr copy_in(void* to, const void* from, std::size_t bytes, buffer keep) = 0;
  virtual event_ptr copy_out(void* to, const void* from, std::size_t bytes, buffer keep) = 0;
  /// Also after the events `after`, some of which may be null; launches do not wait for those.
  /// Returns false, with a null `done`, if values can only be copied through the host.
  virtual bool copy_between(void* to, device_runtime& source, const void* from, std::size_t bytes,
                            buffer keep, std::span<const event_ptr> after, event_ptr& done) {
    return static_cast<void>(to), static_cast<void>(source), static_cast<void>(from),
           static_cast<void>(bytes), static_cast<void>(keep), static_cast<void>(after),
           done = nullptr, false;
  }
  /// Copies within its space, as a launch for the run of `step`; skipped once that run has failed.
  /// If `step` is null the copy is always made.
  virtual void copy_within(void* to, const void* from, std::size_t bytes, device_step* step) = 0;

  /// The entry of its kernel table for an operation; nullptr if there is none.
  virtual const kernel_entry* find_kernel(std::string_view op) const = 0;
  /// Whether it has a kernel for a node with inputs of these types, as its table says. A device can
  /// refuse some of an operation's nodes; where other tasks place nodes, only the table counts.
  virtual bool supports(const node_def& n, std::span<const tensor_type> in) const {
    const kernel_entry* entry = find_kernel(n.op->name);
    // A kernel's results are where it is told to write them, which needs their size.
    return entry && entry->make && entry->types.has(dispatch_type(*n.op, in, n.outputs)) &&
           std::ranges::none_of(n.outputs,
                                [](const tensor_type& t) { return t.type == dtype::string; });
  }
  /// The kernel for a node; nullptr if there is none.
  virtual kernel_ptr make_kernel(const node_def& n, std::span<const tensor_type> in) {
    const kernel_entry* entry = find_kernel(n.op->name);
    return entry && entry->make ? entry->make(n, in) : nullptr;
  }
  /// The state for a frame; null if `launch` itself throws errors.
  virtual std::unique_ptr<device_step> make_step() { return nullptr; }
  /// Starts a kernel for the run of `step`.
  virtual void launch(const launch_request& r, device_step* step) {
    static_cast<void>(step);
    r.what.run(r.call);
  }
  /// Captures launches without starting them; null if the device cannot. The graph is valid as long
  /// as the kernels are not prepared again, and the pointers in the requests,
  /// `step->block_address()` and `code_version()` do not change.
  virtual std::unique_ptr<launch_graph> capture(std::span<const launch_request> launches,
                                                device_step* step) {
    return static_cast<void>(launches), static_cast<void>(step), nullptr;
  }
  /// Starts the captured launches, in order, for the step they were captured for.
  virtual void launch(launch_graph& g, device_step* step) {
    static_cast<void>(g), static_cast<void>(step);
  }
  /// Changes when the code of some kernel changes, so that captured launches are out of date.
  virtual std::uint64_t code_version() const { return 0; }
  /// An event after everything launched so far.
  virtual event_ptr record() { return nullptr; }
  /// Makes later launches wait for `e`, which any device may have recorded.
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

/// The kernels that a device announces: those of `tables`, and the operations that the executor
/// itself runs on every device.
std::shared_ptr<const kernel_set> announce(std::span<const kernel_table> tables);

/// Waits until everything that was launched on `d` is done. For tests and set-up.
void synchronize(device_runtime& d);

}  // namespace deft::ext
