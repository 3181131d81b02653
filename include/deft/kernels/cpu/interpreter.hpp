// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/interpreter.hpp: a portable program, run blockwise over cache-sized pieces.
#pragma once
#include <algorithm>
#include <deft/graph/program.hpp>
#include <deft/kernels/cpu/rows.hpp>
#include <memory>
#include <vector>

namespace deft::ext::cpu {

/// Arguments of a program over a row, as a compiled row takes them, and an address for each result;
/// or over several rows.
struct program_call {
  const void* const* in;
  const std::uintptr_t* mask;
  void* const* out;
  std::int64_t n;
  std::int64_t rows = 1;
  const std::int64_t* in_strides = nullptr;   ///< bytes from a row to the next; literals have none
  const std::int64_t* out_strides = nullptr;  ///< likewise
};

/// The calls that a program over a short row is, and what they are called with.
struct bound_steps {
  std::vector<bound_row> rows;
  std::vector<const void*> in;
  std::vector<std::uintptr_t> mask;
  buffer temporaries;
};

/// A program without folds as a list of row functions over blocks. Where a value has a single use,
/// two operations are one function; a piece that was compiled as an expression is one, too.
class interpreter {
 public:
  static constexpr std::size_t most_operands = 3 * max_fused_operations;  ///< of all steps

  /// The results of a program `in_place` may be written over the inputs of the same numbers, which
  /// no later instruction uses. Throws unimplemented for an operation that has no row function.
  explicit interpreter(const program& p, bool in_place = false);

  void run(const program_call& c) const;
  /// Whether a result may be written over an input: no later step reads that.
  bool may_overwrite(std::size_t input, std::size_t result) const;
  /// The calls of `run(c)`, where that is one block of one row.
  std::span<const bound_row> bind(const program_call& c, bound_steps& to) const;
  std::int64_t block() const { return block_; }
  /// Rows come from memory and not from a cache: the next block is asked for in time.
  void set_far(bool value) { far_ = value; }
  bool is_far() const { return far_; }
  /// What a broadcast operand's address must hold.
  int span() const { return span_; }
  std::size_t steps() const { return steps_.size(); }

 private:
  static constexpr std::size_t temporary_bytes = 24 << 10;
  /// One or two operations are better off as part of what surrounds them.
  static constexpr int least_piece = 3;

  struct step {
    compiled_row row;
    std::vector<std::uint16_t> args;  ///< slots
    std::uint16_t result = 0;         ///< slot
  };
  void run_blocks(const program_call& c) const;
  /// Where a slot begins, and whether what is there goes on with the elements.
  const void* address(const program_call& c, char* temporaries, std::size_t slot) const {
    const std::size_t first_result = operands_ + temporaries_;
    if (slot < operands_) return c.in[slot];
    if (slot < first_result) return temporaries + (slot - operands_) * slot_bytes_;
    return c.out[slot - first_result];
  }
  std::uintptr_t mask(const program_call& c, std::size_t slot) const {
    if (slot < input_sizes_.size()) return c.mask[slot];
    return slot < operands_ ? 0 : ~std::uintptr_t{0};
  }
  void select(const program& p, bool in_place);
  bool select_piece(const program& p, const program_piece& piece, step& s) const;
  void allocate(const program& p);

  // Places: the program's inputs and immediates, then temporaries, then the results.
  std::vector<step> steps_;
  std::vector<std::uint8_t> input_sizes_;
  std::size_t operands_ = 0, temporaries_ = 0;
  std::size_t slot_bytes_ = 0;
  std::int64_t block_ = 0;  ///< elements
  std::vector<std::uint8_t> result_sizes_;
  int span_ = 1;
  bool far_ = false;
};

/// What runs a program over rows: the kernel that was compiled for it, or the interpreter.
class program_code {
 public:
  /// See interpreter. Of a program without code there is nothing to run.
  explicit program_code(const program& p, bool in_place = false)
      : inputs_(p.inputs.size()), literals_(p.immediates.size()) {
    const compiled_row* known = p.is_region() ? find_fused(canonical(p)) : find_fused(p);
    if (known) (p.is_region() ? region_ : row_) = *known;
    if (!row_.run && !p.code.empty()) steps_ = std::make_shared<interpreter>(p, in_place);
  }
  explicit program_code(compiled_row row) : row_(row) {}

  /// Prepares for folds of the expression `p`, by its compiled fold or that of its last operations.
  void find_fold(const program& p, fold_kind kind);
  bool can_fold() const { return fold_.run; }
  /// From operands alone: nothing is computed before.
  bool can_fold_at_once() const { return fold_.run && !before_; }
  /// Adds c.n elements of each row, a multiple of the fold's lanes, to those lanes at c.out.
  void fold(const fold_call& c) const { last_.empty() ? fold_.run(c) : fold_last(c); }

  /// What a broadcast operand's address must hold.
  int span() const {
    const int own = row_.run ? row_.span : steps_ ? steps_->span() : 1;
    return std::max({fold_.span, own, region_.span, before_ ? before_->span() : 0, least_span_});
  }
  /// Other code takes the same operands.
  void widen(int span) { least_span_ = std::max(least_span_, span); }
  /// The compiled kernel; without a function if there is none.
  const compiled_row& compiled() const { return row_; }
  /// See kernel::may_overwrite. Compiled regions may read an input again for another result.
  bool may_overwrite(std::size_t input, std::size_t result) const {
    if (region_.run) return false;
    return steps_ ? steps_->may_overwrite(input, result) : row_.run != nullptr;
  }
  void set_far(bool value) {
    if (steps_) steps_->set_far(value);
    if (before_) before_->set_far(value);
  }
  /// Of a program with one result.
  void run(const row_call& c) const {
    row_.run ? row_.run(c) : steps_->run({c.in, c.mask, &c.out, c.n});
  }
  /// The calls of `run(c)`, where that is one row, and it is short; of a compiled row, whatever its
  /// length, with that many operands.
  std::span<const bound_row> bind(const program_call& c, std::size_t operands,
                                  bound_steps& to) const {
    if (steps_) return c.n <= steps_->block() ? steps_->bind(c, to) : std::span<const bound_row>();
    to.rows = {{row_.run, {c.in, c.mask, c.out[0], c.n}, static_cast<std::uint32_t>(operands)}};
    return to.rows;
  }
  void run(const program_call& c) const {
    const bool one_row = c.rows == 1;
    if (region_.run && one_row) return region_.run({c.in, c.mask, const_cast<void**>(c.out), c.n});
    if (!row_.run) return steps_->run(c);
    if (one_row) return row_.run({c.in, c.mask, c.out[0], c.n});
    run_rows(c);
  }

 private:
  void run_rows(const program_call& c) const;
  /// Finds the fold of the last operation, or of the last two, and gives its operands.
  std::vector<std::uint16_t> find_last(const program& p, fold_kind kind);
  void fold_last(const fold_call& c) const;

  compiled_row row_, fold_;
  compiled_row region_;                          ///< of a region, in addition to its steps
  std::shared_ptr<interpreter> steps_, before_;  ///< before: what the last operations need
  std::size_t inputs_ = 0, literals_ = 0;
  int least_span_ = 1;
  std::vector<std::uint8_t> sizes_;             ///< of the inputs' elements
  std::size_t lane_bytes_ = 0;                  ///< of the fold, for a row
  std::vector<std::uint16_t> before_operands_;  ///< of the operands, those that `before_` takes
  /// Operands of the last operations: of the whole, or counted from there on, results of `before_`.
  std::vector<std::uint16_t> last_;
};

/// Estimated nanoseconds for an element in cache.
double element_cost(const program& p);

}  // namespace deft::ext::cpu
