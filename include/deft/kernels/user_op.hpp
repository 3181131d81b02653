// SPDX-License-Identifier: Apache-2.0
// deft/kernels/user_op.hpp: the processor's kernels of the program's own operations: files add
// them, whatever compiles the file.
#pragma once
#include <deft/core/registry.hpp>
#include <deft/kernels/kernel.hpp>
#include <vector>

namespace deft::ext {

/// A kernel of an operation that is not in the catalog. See registry.
class user_kernel : public registry<user_kernel>::link {
 public:
  static registry<user_kernel> all;

  /// The row of an elementwise operation for operands of that dtype.
  user_kernel(const op_def& op, dtype operand, dtype result, compiled_row row);
  /// A kernel for several dtypes.
  user_kernel(const op_def& op, dtype_set types, kernel_factory make);
  /// One of whole values.
  user_kernel(const op_def& op, dtype_set types, value_kernel_factory make);

  const op_def& op() const { return op_; }
  dtype_set types() const { return types_; }
  /// nullptr for a row, and for a kernel of whole values.
  kernel_factory make() const { return make_; }
  /// nullptr for others.
  value_kernel_factory make_value() const { return make_value_; }
  dtype result() const { return result_; }
  const compiled_row& row() const { return row_; }

 private:
  const op_def& op_;
  dtype_set types_;
  kernel_factory make_ = nullptr;
  value_kernel_factory make_value_ = nullptr;
  dtype result_ = dtype::none;
  compiled_row row_;
};

/// Those that have been added, a line for each operation, in the order of names; rows have
/// no factory.
std::vector<kernel_entry> user_kernel_lines();

}  // namespace deft::ext
