// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/interpreter.hpp: a portable program, run blockwise over cache-sized pieces.
#pragma once
#include <deft/execute/cpu/rows.hpp>
#include <deft/graph/program.hpp>
#include <vector>

namespace deft::cpu {

/// A program as a list of row functions over blocks. Where a value has a single use, two
/// operations are one function.
class interpreter {
 public:
  /// Throws unimplemented for an operation that has no row function.
  explicit interpreter(const program& p);

  /// The whole program over one row; operands as a compiled row takes them.
  void run(const row_call& c) const;
  /// What a broadcast operand's address must hold.
  int span() const { return span_; }
  std::size_t steps() const { return steps_.size(); }

 private:
  static constexpr std::size_t most_operands = 3;
  static constexpr std::size_t temporary_bytes = 24 << 10;

  struct step {
    compiled_row row;
    std::uint8_t count = 0;
    std::uint16_t args[most_operands] = {};  ///< places
    std::uint16_t result = 0;                ///< place
  };
  void select(const program& p);
  void allocate(const program& p);

  // Places: the program's inputs and immediates, then temporaries, then the result.
  std::vector<step> steps_;
  std::vector<std::uint8_t> input_sizes_;
  std::size_t operands_ = 0, temporaries_ = 0;
  std::size_t slot_bytes_ = 0;
  std::int64_t block_ = 0;  ///< elements
  std::int64_t result_size_ = 0;
  int span_ = 1;
};

}  // namespace deft::cpu
