// SPDX-License-Identifier: Apache-2.0
// deft/execute/executor.hpp: a task's part of a plan as a flat schedule.
#pragma once
#include <atomic>
#include <deft/core/feed_ref.hpp>
#include <deft/execute/device.hpp>
#include <deft/execute/variables.hpp>
#include <deft/plan/cut.hpp>
#include <memory>
#include <vector>

namespace deft {

/// What a part needs of its task.
struct task_resources {
  std::span<const std::unique_ptr<device_runtime>> devices;
  variable_store* variables = nullptr;
};

/// How a running part talks to the others.
class step_io {
 public:
  virtual ~step_io() = default;
  /// Pushes a value towards its receiver; never waits for it.
  virtual void send(std::size_t number, const any_array& value) = 0;
  /// The value of receive `number`, or false if it is not there yet: then the part is parked, and
  /// whoever brings the value resumes it.
  virtual bool receive(std::size_t number, any_array& value) = 0;
};

/// Where a send goes and a receive comes from.
struct crossing {
  std::uint64_t key = 0;
  const device_name* peer = nullptr;  ///< task
};

/// The schedule of a part: items in order, resolved kernels, variables and memory.
/// Immutable; what changes during a run is in a frame.
class executable {
 public:
  /// Throws what kernels and variables object to, with node and place.
  executable(plan::part part, const task_resources& task);
  ~executable();

  /// State of one run at a time: values, kernels as prepared, buffers that the next run reuses.
  class frame;
  std::unique_ptr<frame> make_frame() const;

  const plan::part& source() const;
  std::span<const crossing> sends() const;
  std::span<const crossing> receives() const;
  /// Numbers of the feeds it uses, in the order in which run takes them.
  std::span<const std::uint32_t> feeds() const;

  struct compiled;

 private:
  std::unique_ptr<const compiled> compiled_;
};

class executable::frame {
 public:
  explicit frame(const compiled& c);
  ~frame();

  /// Runs until the end, true, or until a value is missing, false: then resume goes on.
  /// Throws the first error with node, place and device; the frame can be used again.
  bool start(std::span<const feed_ref> feeds, const step_info& step, step_io* io,
             const std::atomic<bool>* cancelled);
  bool resume();

  /// After the end: the value of fetch `i`, on the host, still the frame's own; its elements are
  /// valid until the next start or release.
  const any_array& peek(std::size_t i);
  /// The same, given away: later runs use other elements.
  any_array take(std::size_t i);
  /// Drops what the run still holds of others: variables' elements, feeds, received values.
  void release();

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace deft
