// SPDX-License-Identifier: Apache-2.0
// deft/expr/written.hpp: the run-time data of an expression: operands, scopes and source locations
// of its operations. It does not depend on the expression's type, so that no type needs its own
// code to copy, destroy and lower it: that was two thirds of the compile time of an expression.
#pragma once
#include <deft/expr/any_tensor.hpp>
#include <initializer_list>

namespace deft::detail {

struct written_operation;
class written_operand;

/// A shared handle to an operation as it was written, with its operands.
class written {
 public:
  /// Records the scopes in force. Throws invalid_argument for a literal that does not fit,
  /// failed_precondition for an empty tensor.
  written(const op_def& op, attr_list (*attributes)(), source_location w,
          std::initializer_list<written_operand> operands);
  written(const written& o) noexcept;
  written(written&& o) noexcept;
  written& operator=(written o) noexcept;
  ~written();

  const written_operation& operator*() const { return *operation_; }

 private:
  const written_operation* operation_;
};

/// A tensor, a literal or an expression; refers to it during one call.
class written_operand {
 public:
  written_operand(const output& tensor) : tensor_(&tensor) {}               // NOLINT: implicit
  written_operand(const written& expression) : expression_(&expression) {}  // NOLINT: likewise
  written_operand(dtype type, std::int64_t bits) : type_(type), bits_(bits) {}
  /// A literal that does not fit `type`; refused later, where the operation is known.
  written_operand(dtype type, const literal& unfit) : type_(type), unfit_(unfit), fits_(false) {}

 private:
  friend class written;
  const output* tensor_ = nullptr;
  const written* expression_ = nullptr;
  dtype type_ = dtype::none;
  std::int64_t bits_ = 0;
  literal unfit_{};
  bool fits_ = true;
};

/// The output that stands for an expression: one node if all of it was written in the same scopes,
/// with the program that `program` gives, or the operation itself where that is nullptr; else a
/// node for each operation, in its own scopes.
output lower_written(const written& w, const program_ref& (*program)(),
                     const source_location& location);

/// A step of an expression, each after its operands.
struct token {
  const op_def* op = nullptr;  ///< nullptr: an operand of the whole
  dtype type = dtype::none;
  std::uint8_t operands = 0;
  bool literal = false;
};
/// Operations in the order in which they are computed.
program_ref make_program(std::span<const token> tokens);

}  // namespace deft::detail
