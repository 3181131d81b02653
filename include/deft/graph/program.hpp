// SPDX-License-Identifier: Apache-2.0
// deft/graph/program.hpp: the portable program of a fused node, as plain data: expressions, and
// regions with several results and folds. CPU blocks, generated GPU source and compiled kernels
// share this model.
#pragma once
#include <array>
#include <cstdint>
#include <deft/core/any_array.hpp>
#include <deft/core/dims.hpp>
#include <deft/core/dtype.hpp>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace deft::ext {

struct op_def;

/// Where a value of a region differs: at every element, once for every row or column, or not at
/// all.
enum class extent_class : std::uint8_t { element, row, column, whole };
/// The class of a value computed from two values.
constexpr extent_class join(extent_class a, extent_class b) {
  if (a == b || b == extent_class::whole) return a;
  return a == extent_class::whole ? b : extent_class::element;
}

/// One elementwise operation of a program; or a fold of one value, by a reduction.
struct instruction {
  const op_def* op = nullptr;
  dtype type = dtype::none;    ///< of its result
  std::uint16_t args[3] = {};  ///< numbers of values, all below its own
  std::uint8_t count = 0;      ///< how many of args there are
  /// Of a fold, what it leaves: a value for every row, for every column, or one in all.
  extent_class leaves = extent_class::element;

  bool is_fold() const { return leaves != extent_class::element; }

  friend bool operator==(const instruction&, const instruction&) = default;
};

/// A range of instructions that was written as one expression: only its last value is used outside.
/// A device with a compiled kernel of that expression may call it.
struct program_piece {
  std::uint16_t first = 0, last = 0;  ///< instructions from `first`, before `last`

  friend bool operator==(const program_piece&, const program_piece&) = default;
};

/// A result of a region. Axes along which it does not differ are gone, or stay with an extent of 1
/// if `keepdims`.
struct program_output {
  std::uint16_t value = 0;
  extent_class where = extent_class::element;
  bool keepdims = false;

  friend bool operator==(const program_output&, const program_output&) = default;
};

/// Scalar operations in static single assignment form. Values are numbered: inputs first, then
/// immediates, then the results of `code` in order. Immediates (literals) are run-time arguments:
/// their types are part of the program, their values are not.
///
/// An expression has one result, its last value, and no folds. Its inputs are numbered by
/// occurrence and never merged, so that its signature is a function of its type.
///
/// A region has `outputs`. All inputs broadcast together are its extents, which a fold's operand
/// has too. Rows have `row_axes` axes, the last ones. A fold leaves a value for every row, which
/// another pass may use; or one for every column; or, where `row_axes` is 0, one in all. The last
/// two are results only.
struct program {
  static constexpr std::size_t most_outputs = 8;

  std::vector<dtype> inputs;
  std::vector<dtype> immediates;
  std::vector<instruction> code;
  std::vector<program_output> outputs;
  std::uint8_t row_axes = 0;
  std::vector<program_piece> pieces;  ///< in order; a hint, not part of the signature
  std::string signature;              ///< canonical text of the above, the same on every compiler
  std::uint64_t hash = 0;

  std::size_t values() const { return inputs.size() + immediates.size() + code.size(); }
  dtype type_of(std::size_t value) const {
    if (value < inputs.size()) return inputs[value];
    value -= inputs.size();
    if (value < immediates.size()) return immediates[value];
    return code[value - immediates.size()].type;
  }
  bool is_region() const { return !outputs.empty(); }
  /// Of an expression.
  dtype result() const { return code.back().type; }
  /// The instruction that gives a value; nullptr for inputs and immediates.
  const instruction* made_by(std::size_t value) const {
    const std::size_t operands = inputs.size() + immediates.size();
    return value < operands ? nullptr : &code[value - operands];
  }

  /// Fills in signature and hash.
  void seal();
};

using program_ref = std::shared_ptr<const program>;

/// Throws invalid_argument naming the instruction that is not sound: argument numbers, arity,
/// dtypes, operations that are neither elementwise nor folds, the use of a fold that is a result
/// only, or more than max_fused_operations of them; invalid results of a region; and pieces
/// that are not consecutive instructions in order.
void validate(const program& p);

/// Properties of each value of a region that follow from the classes of its inputs.
struct region_shape {
  std::vector<extent_class> where;
  /// A row is passed over once for every phase: what uses the fold of a row belongs to a later one.
  std::vector<std::uint8_t> phase;
  std::uint8_t phases = 1;
};
/// Throws invalid_argument for the fold of a value that is the same along what is folded, and for
/// a result of another class than declared.
region_shape shape_of(const program& region, std::span<const extent_class> inputs);

/// Writes a program value by value, in depth-first order, and numbers them at the end.
class program_builder {
 public:
  struct value {
    enum class kind : std::uint8_t { input, immediate, result } what = kind::input;
    std::uint16_t number = 0;
  };
  value input(dtype t);
  value immediate(dtype t);
  value apply(const op_def& op, dtype type, std::span<const value> args);
  value fold(const op_def& op, dtype type, value of, extent_class leaves);
  /// Marks the instructions from number `first` on as one expression.
  void end_piece(std::size_t first);
  /// A result of a region.
  void output(value v, extent_class where, bool keep);
  void row_axes(int count) { program_.row_axes = static_cast<std::uint8_t>(count); }
  std::size_t operations() const { return program_.code.size(); }
  /// Its number in the finished program, once all inputs and immediates are there.
  std::uint16_t number(value v) const;
  program_ref finish();

 private:
  program program_;
  std::vector<std::array<value, 3>> args_;  ///< of each instruction
  std::vector<value> outputs_;
};

/// A part of a program as a separate program, and the values of the whole that are its inputs and
/// then its immediates.
struct program_part {
  program_ref program;
  std::vector<std::uint16_t> operands;
};
/// The expression of a piece. Null if a value other than its last is used outside.
program_part separate(const program& p, const program_piece& piece);
/// What computes `results` from the values that `is_operand` names: an expression if there is one
/// result, which needs no region. Literals are operands, too.
program_part extract(const program& p, std::span<const std::uint16_t> results,
                     const std::function<bool(std::uint16_t)>& is_operand);

/// The same region with its instructions in depth-first order from its results, so that equivalent
/// programs become equal.
program canonical(const program& region);

/// The bits of a literal, in the form of an immediate of a program.
template <plain_element T>
constexpr std::int64_t to_immediate(T v) {
  if constexpr (is_half_type<T>)
    return v.bits();
  else if constexpr (std::is_same_v<T, float>)
    return __builtin_bit_cast(std::int32_t, v);
  else if constexpr (std::is_same_v<T, double>)
    return __builtin_bit_cast(std::int64_t, v);
  else
    return static_cast<std::int64_t>(v);
}
template <plain_element T>
constexpr T from_immediate(std::int64_t bits) {
  if constexpr (is_half_type<T>)
    return T::from_bits(static_cast<std::uint16_t>(bits));
  else if constexpr (std::is_same_v<T, float>)
    return __builtin_bit_cast(float, static_cast<std::int32_t>(bits));
  else if constexpr (std::is_same_v<T, double>)
    return __builtin_bit_cast(double, bits);
  else
    return static_cast<T>(bits);
}
/// The literal itself, of rank 0.
any_array literal_value(dtype t, std::int64_t bits);

}  // namespace deft::ext
