// SPDX-License-Identifier: Apache-2.0
// deft/graph/program.hpp: the portable program of a fused node, as plain data.
#pragma once
#include <array>
#include <cstdint>
#include <deft/core/any_array.hpp>
#include <deft/core/dims.hpp>
#include <deft/core/dtype.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace deft {

struct op_def;

/// One elementwise operation of a program.
struct instruction {
  const op_def* op = nullptr;
  dtype type = dtype::none;    ///< of its result
  std::uint16_t args[3] = {};  ///< numbers of values, all below its own
  std::uint8_t count = 0;      ///< how many of args there are

  friend bool operator==(const instruction&, const instruction&) = default;
};

/// A run of a program's instructions that was an expression of its own: nothing but its last value
/// is used outside. A device that has compiled that expression may call it.
struct program_piece {
  std::uint16_t first = 0, last = 0;  ///< instructions from `first`, before `last`

  friend bool operator==(const program_piece&, const program_piece&) = default;
};

/// Scalar operations in static single assignment form. Values are numbered: inputs first, then
/// immediates, then the results of `code` in order; the last one is the program's result.
/// Inputs are numbered by occurrence and never merged, so that the signature of a whole expression
/// is a function of its type. Immediates (literals) are run-time arguments: their types are part
/// of the program, their values are not.
struct program {
  std::vector<dtype> inputs;
  std::vector<dtype> immediates;
  std::vector<instruction> code;
  std::vector<program_piece> pieces;  ///< in order; a hint, no part of the signature
  std::string signature;              ///< canonical text of the above, the same on every compiler
  std::uint64_t hash = 0;

  std::size_t values() const { return inputs.size() + immediates.size() + code.size(); }
  dtype type_of(std::size_t value) const {
    if (value < inputs.size()) return inputs[value];
    value -= inputs.size();
    if (value < immediates.size()) return immediates[value];
    return code[value - immediates.size()].type;
  }
  dtype result() const { return code.back().type; }

  /// Fills in signature and hash.
  void seal();
};

using program_ref = std::shared_ptr<const program>;

/// Throws invalid_argument naming the instruction that is not sound: argument numbers, arity,
/// dtypes, operations that are not elementwise, or more than max_fused_operations of them; and
/// pieces that are not runs of instructions in order.
void check(const program& p);

/// Writes a program value by value, in the order of a depth-first walk, and numbers them at the
/// end.
class program_builder {
 public:
  struct value {
    enum class kind : std::uint8_t { input, immediate, result } what = kind::input;
    std::uint16_t number = 0;
  };
  value input(dtype t);
  value immediate(dtype t);
  value apply(const op_def& op, dtype type, std::span<const value> args);
  /// The instructions since there were `first` were an expression of their own.
  void end_piece(std::size_t first);
  std::size_t operations() const { return program_.code.size(); }
  program_ref finish();

 private:
  program program_;
  std::vector<std::array<value, 3>> args_;  ///< of each instruction
};

/// The expression that a piece was, and which values of `p` are its inputs and then its immediates.
struct separate_piece {
  program_ref program;
  std::vector<std::uint16_t> operands;
};
/// Null if another value than the last is used outside.
separate_piece separate(const program& p, const program_piece& piece);

/// A literal's bits, as a program's immediate travels.
template <element T>
constexpr std::int64_t to_immediate(T v) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_bit_cast(std::int32_t, v);
  else if constexpr (std::is_same_v<T, double>)
    return __builtin_bit_cast(std::int64_t, v);
  else
    return static_cast<std::int64_t>(v);
}
template <element T>
constexpr T from_immediate(std::int64_t bits) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_bit_cast(float, static_cast<std::int32_t>(bits));
  else if constexpr (std::is_same_v<T, double>)
    return __builtin_bit_cast(double, bits);
  else
    return static_cast<T>(bits);
}
/// The literal itself, of rank 0.
any_array literal_value(dtype t, std::int64_t bits);

}  // namespace deft
