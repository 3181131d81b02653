// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/layout.hpp: how an elementwise kernel walks operands that are broadcast
// together.
#pragma once
#include <deft/graph/op_def.hpp>
#include <span>
#include <vector>

namespace deft::cpu {

/// Rows of the result, and how far each operand moves from one to the next. Adjacent dimensions
/// that all operands treat alike are one; extents of 1 are gone.
class row_layout {
 public:
  row_layout() = default;
  row_layout(std::span<const tensor_type> in, const tensor_type& out);

  std::int64_t elements() const { return n_ * rows_; }
  /// Elements in a row; an operand has that many, or one for all of them.
  std::int64_t n() const { return n_; }
  std::int64_t rows() const { return rows_; }
  bool dense(std::size_t operand) const { return steps_[operand * levels_ + levels_ - 1] != 0; }

  /// Walks rows: `at` follows each operand's first element in the row.
  class cursor {
   public:
    /// At row number `row`; `base` and `at` have an address for each operand.
    cursor(const row_layout& l, const void* const* base, const char** at, std::int64_t row);
    void next();

   private:
    const row_layout& layout_;
    const char** at_;
    std::int64_t index_[max_rank] = {};
  };

 private:
  std::size_t operands_ = 0, levels_ = 1;
  std::int64_t n_ = 1, rows_ = 1;
  std::int64_t extents_[max_rank] = {1};  ///< outermost first, the row last
  std::vector<std::int64_t> steps_;       ///< bytes, by operand, then level; 0 where broadcast
};

}  // namespace deft::cpu
