// SPDX-License-Identifier: Apache-2.0
// deft/kernels/kernel.hpp: what runs one node on a device, and a device's table of kernels.
#pragma once
#include <any>
#include <deft/kernels/compiled_row_registry.hpp>
#include <deft/kernels/context.hpp>
#include <deft/kernels/resources.hpp>
#include <deft/kernels/wait_list.hpp>
#include <memory>
#include <span>
#include <string_view>

namespace deft::ext {

class device_runtime;

/// The arguments of one run: addresses of row-major elements on the kernel's device. `run` reads
/// the arrays of addresses before it returns.
struct kernel_call {
  const void* const* in;
  void* const* out;  ///< nullptr for an unused output that `optional_output` allows to omit
  const step_context* step;
  void* scratch = nullptr;  ///< `scratch()` bytes on the device, for this run alone
  /// On a device with separate memory: the address there of step_context::draw, a std::uint64_t
  /// that the first copy of every run sets.
  const void* draw_word = nullptr;
  /// The stream on which kernels of such a device queue their work; its type depends on the device.
  void* stream = nullptr;
};

/// One node's computation, ready to run on one device. Made when a plan is made; runs are never
/// concurrent. On an asynchronous device `run` queues the work and returns; it neither allocates
/// nor waits.
class kernel {
 public:
  virtual ~kernel() = default;

  /// Sets the types of the following runs; all extents are known, and agree with the shape rule.
  /// Called before the first run and whenever they change: layouts are computed here, not in run.
  /// Throws invalid_argument for errors that are known only at run time.
  virtual void prepare(std::span<const tensor_type> in, std::span<const tensor_type> out) = 0;
  virtual void run(const kernel_call& c) = 0;

  /// Bytes of scratch memory that a run needs.
  virtual std::size_t scratch() const { return 0; }
  /// Whether output `o` may be omitted.
  virtual bool optional_output(int o) const { return static_cast<void>(o), false; }
  /// Whether output `o` may be at the address of input `i`, which has the same type and is not used
  /// again: each element is read for the last time before that of the same number is written.
  virtual bool may_overwrite(std::size_t i, std::size_t o) const {
    return static_cast<void>(i), static_cast<void>(o), false;
  }
  /// Estimated nanoseconds of a run.
  virtual double cost() const { return 1000; }
  /// If `run(c)` only calls row functions, those calls; otherwise none. Valid until the kernel is
  /// prepared or bound again, as long as the operands stay at the addresses in `c`.
  virtual std::span<const bound_row> bind(const kernel_call& c) {
    return static_cast<void>(c), std::span<const bound_row>();
  }
};
using kernel_ptr = std::unique_ptr<kernel>;

/// The interface of a value_kernel to its node in one run.
class value_call {
 public:
  virtual ~value_call() = default;
  virtual std::size_t inputs() const = 0;
  /// The value of an input, on the device of the node.
  virtual any_array input(std::size_t i) const = 0;
  /// Sets output `o`; its extents need not be known before.
  virtual void output(std::size_t o, any_array value) = 0;
  virtual const step_context& step() const = 0;
  /// A waker that makes the executor run this node again from its start.
  virtual waker make_waker() const = 0;
  /// The place of this node and run in a list of those who wait. It leaves the list when the kernel
  /// is done, or the run ends.
  virtual wait_list::ticket& ticket() = 0;
  /// What the kernel keeps of this run from one call to the next: empty at first, and again once
  /// the run has ended.
  virtual std::any& state() = 0;

  /// Waits in `l`. Returns false, as the kernel does.
  bool wait_in(wait_list& l) { return l.add(ticket(), make_waker()), false; }
};

/// A node that works with whole values, and may have to wait: transfers, queues, barriers. One
/// serves all runs of a part, which may be concurrent; what it keeps of one run is in its call.
class value_kernel {
 public:
  virtual ~value_kernel() = default;
  /// Returns false if it has to wait. It then has changed nothing but the state of its call, holds
  /// no lock, and is called again from its start after a waker of `c` was called, which may be
  /// before it returns. Wake-ups may be spurious.
  virtual bool run(value_call& c) const = 0;
  /// Whether a run may take so long that what was sent before must not wait for it.
  virtual bool is_long() const { return false; }
};
using value_kernel_ptr = std::unique_ptr<value_kernel>;

/// What a value_kernel is made from.
struct value_request {
  const node_def& node;
  resource_store& resources;
  std::vector<transfer>& sends;     ///< of the part; the kernel of a send adds its own
  std::vector<transfer>& receives;  ///< likewise
  std::uint64_t session;            ///< whose master registered the part; 0: none
  std::string_view master;          ///< the task of that master
  std::span<const std::unique_ptr<device_runtime>> devices;  ///< of the task
};

/// Makes the kernel of a node whose inputs have these types (extents may be `dyn`).
/// Throws unimplemented if there is none for these dtypes.
using kernel_factory = kernel_ptr (*)(const node_def& n, std::span<const tensor_type> in);
using value_kernel_factory = value_kernel_ptr (*)(const value_request& r);

/// One entry of a device's table: an operation, the dtypes by which dispatch_type chooses it, and
/// one of the two factories.
struct kernel_entry {
  std::string_view op;
  dtype_set types;
  kernel_factory make = nullptr;
  value_kernel_factory make_value = nullptr;
};
using kernel_table = std::span<const kernel_entry>;

}  // namespace deft::ext
