// SPDX-License-Identifier: Apache-2.0
// deft/kernels/compiled_row_registry.hpp: kernels compiled for one elementwise expression, and the
// registry in which programs find them at run time.
#pragma once
#include <cstdint>
#include <deft/core/registry.hpp>
#include <deft/graph/op_def.hpp>

namespace deft::ext {

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
/// What the row function of a fold is called with: several rows, each with its `compiled_row::span`
/// elements at `out`.
struct fold_call : row_call {
  std::int64_t rows = 1;
  const std::int64_t* to_next = nullptr;  ///< bytes from the end of an input's row to its next one
};

/// A row function with its arguments, which are at fixed addresses.
struct bound_row {
  void (*run)(const row_call&) = nullptr;
  row_call call{};
  std::uint32_t operands = 0;  ///< length of call.in and call.mask
};

/// A row function. Throws invalid_argument for errors that depend on values (a zero divisor).
struct compiled_row {
  void (*run)(const row_call&) = nullptr;
  int span = 0;  ///< elements that a broadcast operand's address must hold
};

/// Registers the compiled kernel of a program, or of a fold of it. The row function of a fold takes
/// a fold_call whose `n` is a multiple of `span`, and adds to the `span` elements at `out`. See
/// registry.
class fused_registration : public registry<fused_registration>::link {
 public:
  static registry<fused_registration> all;

  fused_registration(const program_ref& (*program)(), compiled_row row,
                     fold_kind fold = fold_kind::none);

  const program& signature() const { return *program_(); }
  const compiled_row& row() const { return row_; }
  fold_kind fold() const { return fold_; }

 private:
  const program_ref& (*program_)();
  compiled_row row_;
  fold_kind fold_;
};

/// The kernel compiled into this process for `p`, or for a fold of it; nullptr if there is none.
/// For a mean, the kernel of the sum.
const compiled_row* find_fused(const program& p, fold_kind fold = fold_kind::none);

}  // namespace deft::ext
