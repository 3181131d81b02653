// SPDX-License-Identifier: Apache-2.0
// deft/execute/kernel.hpp: what runs one node on a device, and the tables of kernels.
#pragma once
#include <cstdint>
#include <deft/graph/graph_def.hpp>
#include <memory>
#include <span>
#include <string_view>

namespace deft {

/// What a kernel may know of the step it runs in.
struct step_info {
  std::uint64_t step = 0;  ///< the session's step: counter of random operations
};

/// Arguments of one run: elements on the kernel's device, row-major.
struct kernel_call {
  const void* const* in;
  void* const* out;  ///< nullptr for an output that nothing needs, where `optional_output` says so
  const step_info* step;
};

/// One node, ready to run on one device. Made when a plan is made; runs are never concurrent.
class kernel {
 public:
  virtual ~kernel() = default;

  /// The types of the runs to come, every extent known, checked against the shape rule. Called
  /// before the first run and whenever they change: layouts are worked out here, not in run.
  /// Throws invalid_argument for what only run time knows.
  virtual void prepare(std::span<const tensor_type> in, std::span<const tensor_type> out) = 0;
  virtual void run(const kernel_call& c) = 0;

  /// Whether output `o` may be left out.
  virtual bool optional_output(int o) const { return static_cast<void>(o), false; }
  /// Estimated nanoseconds of a run, as prepared.
  virtual double cost() const { return 1000; }
};

using kernel_ptr = std::unique_ptr<kernel>;
/// Makes the kernel of a node whose inputs have these types (extents may be `dyn`).
/// Throws unimplemented if there is none for these dtypes.
using kernel_factory = kernel_ptr (*)(const node_def& n, std::span<const tensor_type> in);

/// The factory for an operation on the CPU; nullptr if there is none.
kernel_factory find_cpu_kernel(std::string_view op);
/// Names of the operations that have a CPU kernel.
std::vector<std::string_view> cpu_kernel_names();

}  // namespace deft
