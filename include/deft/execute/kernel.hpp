// SPDX-License-Identifier: Apache-2.0
// deft/execute/kernel.hpp: what runs one node on a device, and a device's table of kernels.
#pragma once
#include <deft/execute/context.hpp>
#include <deft/execute/fused.hpp>
#include <deft/execute/resources.hpp>
#include <memory>
#include <span>
#include <string_view>

namespace deft {

/// Arguments of one run: elements on the kernel's device, row-major. A run reads what it points to
/// before it returns.
struct kernel_call {
  const void* const* in;
  void* const* out;  ///< nullptr for an output that nothing needs, where `optional_output` says so
  const step_context* step;
  void* scratch = nullptr;  ///< `scratch()` bytes on the device, for this run alone
  /// On a device with memory of its own: step_context::draw there, a std::uint64_t that every run's
  /// first copy sets.
  const void* draw_word = nullptr;
  /// What the kernels of such a device queue their work on; of a type of its own.
  void* stream = nullptr;
};

/// One node's computation, ready to run on one device. Made when a plan is made; runs are never
/// concurrent. On a device whose work goes on behind the caller's back, `run` queues it and
/// returns: it neither allocates nor waits.
class kernel {
 public:
  virtual ~kernel() = default;

  /// The types of the runs to come, every extent known, checked against the shape rule. Called
  /// before the first run and whenever they change: layouts are worked out here, not in run.
  /// Throws invalid_argument for errors that can be found only at run time.
  virtual void prepare(std::span<const tensor_type> in, std::span<const tensor_type> out) = 0;
  virtual void run(const kernel_call& c) = 0;

  /// Bytes of scratch memory that a run asks for, as prepared.
  virtual std::size_t scratch() const { return 0; }
  /// Whether output `o` may be left out.
  virtual bool optional_output(int o) const { return static_cast<void>(o), false; }
  /// Estimated nanoseconds of a run, as prepared.
  virtual double cost() const { return 1000; }
  /// If all that `run(c)` does is calls of row functions, those calls; valid until the kernel is
  /// prepared or bound again, as long as the operands stay where `c` has them.
  virtual std::span<const bound_row> bind(const kernel_call& c) {
    return static_cast<void>(c), std::span<const bound_row>();
  }
};
using kernel_ptr = std::unique_ptr<kernel>;

/// What a value_kernel sees of its node in one run.
class value_call {
 public:
  virtual ~value_call() = default;
  virtual std::size_t inputs() const = 0;
  /// The value of an input, on the device of the node.
  virtual any_array input(std::size_t i) const = 0;
  /// Gives output `o` its value, whose extents need not be known before.
  virtual void output(std::size_t o, any_array value) = 0;
  virtual const step_context& step() const = 0;
  /// Calls this node again from its start.
  virtual waker make_waker() const = 0;
};

/// A node that works with whole values, and may have to wait: transfers, queues, barriers. One
/// serves all runs of a part, which may be concurrent.
class value_kernel {
 public:
  virtual ~value_kernel() = default;
  /// False: not yet. It has then done nothing, holds no lock, and is called again from its start
  /// after a waker of `c` was called, which may be before it returns. A waker may be called in
  /// vain.
  virtual bool run(value_call& c) const = 0;
};
using value_kernel_ptr = std::unique_ptr<value_kernel>;

/// What a value_kernel is made from.
struct value_request {
  const node_def& node;
  resource_store& resources;
  std::vector<transfer>& sends;     ///< of the part; the kernel of a send adds its own
  std::vector<transfer>& receives;  ///< likewise
};

/// Makes the kernel of a node whose inputs have these types (extents may be `dyn`).
/// Throws unimplemented if there is none for these dtypes.
using kernel_factory = kernel_ptr (*)(const node_def& n, std::span<const tensor_type> in);
using value_kernel_factory = value_kernel_ptr (*)(const value_request& r);

/// One line of a device's table: an operation, the dtypes by which dispatch_type chooses it, and
/// one of the two factories.
struct kernel_entry {
  std::string_view op;
  dtype_set types;
  kernel_factory make = nullptr;
  value_kernel_factory make_value = nullptr;
};
using kernel_table = std::span<const kernel_entry>;

}  // namespace deft
