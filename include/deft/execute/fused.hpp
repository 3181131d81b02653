// SPDX-License-Identifier: Apache-2.0
// deft/execute/fused.hpp: kernels that were compiled for one elementwise expression, and how a
// program finds them at run time.
#pragma once
#include <cstdint>
#include <deft/graph/op_def.hpp>

namespace deft {

/// One row of an elementwise kernel: `n` elements in a line.
struct row_call {
  const void* const* in;       ///< an address for each input, then for each literal
  const std::uintptr_t* mask;  ///< for each of them: all bits set, it has n elements; 0, one
                               ///< element stands for all, and its address holds
                               ///< `compiled_row::span` copies (a single one if n is 1)
  void* out;                   ///< n elements; may be the address of an input with n of them; of
                               ///< a region, such an address for each result: a void* const*
  std::int64_t n;
};
/// What the row function of a fold is called with: several rows, each with `compiled_row::span`
/// elements of its own at `out`.
struct fold_call : row_call {
  std::int64_t rows = 1;
  const std::int64_t* to_next = nullptr;  ///< bytes from the end of an input's row to its next one
};

/// A row function with its arguments, which stay where they are.
struct bound_row {
  void (*run)(const row_call&) = nullptr;
  row_call call{};
  std::uint32_t operands = 0;  ///< length of call.in and call.mask
};

/// A kernel over rows. Throws invalid_argument for what only values tell (a zero divisor).
struct compiled_row {
  void (*run)(const row_call&) = nullptr;
  int span = 0;  ///< elements that a broadcast operand's address must hold
};

/// Makes a compiled expression known under its program, or its fold: a row function that takes a
/// fold_call, whose `n` is a multiple of `span`, and which adds to the `span` elements at `out`.
/// Objects with static storage register themselves before main; they live as long as the process.
class fused_registration {
 public:
  fused_registration(const program_ref& (*program)(), compiled_row row,
                     fold_kind fold = fold_kind::none);
  fused_registration(const fused_registration&) = delete;

  const program& signature() const { return *program_(); }
  const compiled_row& row() const { return row_; }
  fold_kind fold() const { return fold_; }
  const fused_registration* next() const { return next_; }

 private:
  const program_ref& (*program_)();
  compiled_row row_;
  fold_kind fold_;
  const fused_registration* next_;
};

/// The kernel that this process was compiled with for `p`, or for its fold; nullptr if there is
/// none. A mean is a sum.
const compiled_row* find_fused(const program& p, fold_kind fold = fold_kind::none);

}  // namespace deft
