// SPDX-License-Identifier: Apache-2.0
// deft/execute/device.hpp: the device concept: memory, copies, kernels, and when they are done.
#pragma once
#include <deft/execute/kernel.hpp>
#include <deft/plan/place.hpp>
#include <memory>
#include <vector>

namespace deft {

/// A point in the work of a device.
class device_event {
 public:
  virtual ~device_event() = default;
  /// Waits until all work before it is done. Throws what went wrong.
  virtual void synchronize() = 0;
};
/// Null where the work was done before the event was recorded.
using event_ptr = std::shared_ptr<device_event>;

/// One device of this process. Written for devices with memory of their own and work that runs
/// behind the caller's back; the processor is the simple case.
class device_runtime {
 public:
  virtual ~device_runtime() = default;

  const device_info& info() const { return info_; }

  /// Where the elements of its values live.
  virtual memory& space() = 0;
  /// Copies `bytes` bytes from the host, or to it. Ordered after what was launched before; on
  /// return the host's side is free to be used.
  virtual void copy_in(void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_out(void* to, const void* from, std::size_t bytes) = 0;
  /// Copies from another device; false if there is no way but through the host.
  virtual bool copy_between(void* to, device_runtime& source, const void* from, std::size_t bytes) {
    return static_cast<void>(to), static_cast<void>(source), static_cast<void>(from),
           static_cast<void>(bytes), false;
  }
  /// The kernel for a node, or nullptr.
  virtual kernel_ptr make_kernel(const node_def& n, std::span<const tensor_type> in) = 0;
  /// Starts a kernel; those of one device run in the order of their launches.
  virtual void launch(kernel& k, const kernel_call& c) { k.run(c); }
  /// The point after everything that was launched so far.
  virtual event_ptr record() { return nullptr; }
  /// What is launched from now on runs after `e`, whichever device recorded that.
  virtual void wait(const event_ptr& e) {
    if (e) e->synchronize();
  }
  /// Waits until everything launched is done. Throws what went wrong.
  void synchronize() {
    if (auto e = record()) e->synchronize();
  }

 protected:
  explicit device_runtime(device_info info) : info_(std::move(info)) {}
  device_info info_;
};

/// `number` is the device's index: "/job:…/cpu:1". All processors' devices share the host's memory.
std::unique_ptr<device_runtime> make_cpu_device(const device_name& task, int number);

/// Operations that the executor runs itself on every device, without a kernel.
std::span<const std::string_view> executor_ops();

/// Moves a value between devices of this process, after what `from` has launched; shares the
/// elements where both see them.
any_array copy_to_device(const any_array& value, device_runtime& from, device_runtime& to);

}  // namespace deft
