// SPDX-License-Identifier: Apache-2.0
// deft/graph/region.hpp: a fused region as plain data: what is computed in passes over rows, with
// several results, folds, and variables written in place. The axes of its values are collapsed to
// rows and columns; CPU blocks, generated GPU source and compiled kernels share this model.
#pragma once
#include <cstdint>
#include <deft/core/dtype.hpp>
#include <deft/graph/op_def.hpp>
#include <vector>

namespace deft {

/// Where a value differs: one for every element, for every row, for every column, or one in all.
enum class extent_class : std::uint8_t { element, row, column, whole };
/// What a value of two values is.
constexpr extent_class join(extent_class a, extent_class b) {
  if (a == b || b == extent_class::whole) return a;
  return a == extent_class::whole ? b : extent_class::element;
}

/// How a fold joins what it folds.
enum class fold_kind : std::uint8_t { none, sum, prod, max, min };

/// Values in static single assignment form, numbered as a program's are: inputs, immediates, then
/// the results of `code` in order.
struct region {
  static constexpr std::uint16_t none = 0xffff;
  static constexpr std::size_t most_outputs = 8;

  struct input {
    dtype type = dtype::none;
    extent_class where = extent_class::element;
  };
  /// A map by an elementwise operation; or a fold of one value, whose `to` says over what: `row`
  /// leaves one value a row.
  struct instruction {
    const op_def* op = nullptr;  ///< of a map
    dtype type = dtype::none;    ///< of the result
    std::uint16_t args[3] = {};
    std::uint8_t count = 0;
    fold_kind fold = fold_kind::none;
    extent_class to = extent_class::element;  ///< of a fold
  };
  struct output {
    std::uint16_t value = 0;
    std::uint16_t into = none;  ///< the input that it is written over, element by element
  };

  std::vector<input> inputs;
  std::vector<dtype> immediates;
  std::vector<instruction> code;
  std::vector<output> outputs;

  std::size_t values() const { return inputs.size() + immediates.size() + code.size(); }
  dtype type_of(std::size_t value) const;
};

/// What follows from the instructions for each value.
struct region_shape {
  std::vector<extent_class> where;  ///< of each value
  /// A row is passed over once for every phase: what uses the fold of a row belongs to a later one.
  std::vector<std::uint8_t> phase;
  std::uint8_t phases = 1;
};

/// The classes and phases of `r`. Throws invalid_argument naming what is not sound: order, arity
/// and dtypes of instructions; folds of what is no element; the use of a fold over columns or over
/// all, which is a result only; more than 64 operations or 8 results; a result written over an
/// input that has another dtype or class, that another result is written over, or whose elements
/// are read again in a later phase.
region_shape check(const region& r);

}  // namespace deft
