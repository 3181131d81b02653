// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/registered.hpp: kernels of GPUs that were compiled for one expression, and how a
// fused node finds them.
#pragma once
#include <deft/core/registry.hpp>
#include <deft/kernels/kernel.hpp>
#include <utility>

namespace deft::ext::gpu {

/// Whose kernels they are: DEFT_GPU_SYSTEM is one of these, too.
enum class kernels_of : std::uint8_t { cuda, simulated };

/// What a registered kernel is made for.
struct registered_request {
  const program& whole;  ///< of the node
  /// Values of `whole` that are the inputs of the expression, and then its literals.
  std::span<const std::uint16_t> operands;
  /// Bits of the literals of `whole`, which are not used where they are further inputs of each run.
  std::span<const std::int64_t> literals;
};

/// Makes a kernel known under the program of an expression, or of its fold. See registry.
class registered_kernel : public registry<registered_kernel>::link {
 public:
  static registry<registered_kernel> all;

  /// Of the system's queued_kernels.
  using maker = kernel_ptr (*)(const registered_request&);

  /// `alone`: the expression is this elementwise operation, which is not in the catalog.
  registered_kernel(kernels_of system, const program_ref& (*program)(), maker make,
                    fold_kind fold = fold_kind::none, const op_def* alone = nullptr);

  kernels_of system() const { return system_; }
  const program& signature() const { return *program_(); }
  maker make() const { return make_; }
  fold_kind fold() const { return fold_; }
  const op_def* alone() const { return alone_; }

 private:
  kernels_of system_;
  const program_ref& (*program_)();
  maker make_;
  fold_kind fold_;
  const op_def* alone_;
};

/// The kernel that this process was compiled with for `p`, an expression or a region that is one's
/// fold; nullptr if there is none.
kernel_ptr make_registered(kernels_of system, const program& p,
                           std::span<const std::int64_t> literals);
/// Of an operation that is not in the catalog.
kernel_ptr make_registered(kernels_of system, const op_def& op, dtype operand, dtype result);
/// Such operations, with the dtypes of their last operands.
std::vector<std::pair<const op_def*, dtype_set>> registered_operations(kernels_of system);

}  // namespace deft::ext::gpu
