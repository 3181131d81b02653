// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/interpreter.hpp: a portable program, run blockwise over cache-sized pieces.
#pragma once
#include <deft/execute/cpu/rows.hpp>
#include <deft/graph/program.hpp>
#include <vector>

namespace deft::cpu {

/// A program as a list of row functions over blocks. Where a value has a single use, two
/// operations are one function; a piece that was compiled as an expression is one, too.
class interpreter {
 public:
  /// Throws unimplemented for an operation that has no row function.
  explicit interpreter(const program& p);

  /// The whole program over one row; operands as a compiled row takes them.
  void run(const row_call& c) const;
  /// Rows come from memory and not from a cache: the next block is asked for in time.
  void set_far(bool far) { far_ = far; }
  /// What a broadcast operand's address must hold.
  int span() const { return span_; }
  std::size_t steps() const { return steps_.size(); }

 private:
  static constexpr std::size_t most_operands = 3 * max_fused_operations;  ///< of all steps
  static constexpr std::size_t temporary_bytes = 24 << 10;
  /// One or two operations are better off as part of what surrounds them.
  static constexpr int least_piece = 3;

  struct step {
    compiled_row row;
    std::vector<std::uint16_t> args;  ///< places
    std::uint16_t result = 0;         ///< place
  };
  void select(const program& p);
  bool select_piece(const program& p, const program_piece& piece, step& s) const;
  void allocate(const program& p);

  // Places: the program's inputs and immediates, then temporaries, then the result.
  std::vector<step> steps_;
  std::vector<std::uint8_t> input_sizes_;
  std::size_t operands_ = 0, temporaries_ = 0;
  std::size_t slot_bytes_ = 0;
  std::int64_t block_ = 0;  ///< elements
  std::int64_t result_size_ = 0;
  int span_ = 1;
  bool far_ = false;
};

}  // namespace deft::cpu
