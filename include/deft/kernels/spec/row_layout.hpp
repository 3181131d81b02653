// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/row_layout.hpp: how an elementwise kernel iterates over operands that are
// broadcast together.
#pragma once
#include <deft/graph/op_def.hpp>
#include <span>
#include <vector>

namespace deft::ext {

/// The result as rows, and the strides of each operand. Adjacent dimensions with compatible strides
/// in all operands are merged; extents of 1 are dropped. Consecutive rows form a plane; a single
/// row is a single plane.
class row_layout {
 public:
  row_layout() = default;
  row_layout(std::span<const tensor_type> in, const tensor_type& out);

  /// Elements in a row, rows in a plane, planes.
  std::int64_t n() const { return extents_[levels_ - 1]; }
  std::int64_t rows() const { return extents_[levels_ - 2]; }
  std::int64_t planes() const { return planes_; }
  std::int64_t elements() const { return n() * rows() * planes_; }

  /// Bytes from an element of a row to the next, and from a row to the next: 0 where broadcast.
  std::int64_t step(std::size_t operand) const { return steps_[operand * levels_ + levels_ - 1]; }
  std::int64_t rise(std::size_t operand) const { return steps_[operand * levels_ + levels_ - 2]; }

  /// The number of extents that matter: without outer extents of 1.
  int levels() const {
    std::size_t outer = 0;
    while (outer + 1 < levels_ && extents_[outer] == 1) ++outer;
    return static_cast<int>(levels_ - outer);
  }
  /// All extents, outermost first; the last is the row's. Bytes that an operand moves along each.
  std::span<const std::int64_t> extents() const { return {extents_, levels_}; }
  std::span<const std::int64_t> steps(std::size_t operand) const {
    return std::span(steps_).subspan(operand * levels_, levels_);
  }

  /// Each operand's first element in plane number `plane`, given that in the first.
  void addresses(std::int64_t plane, const void* const* base, const char** at) const;

 private:
  std::size_t operands_ = 0, levels_ = 2;
  std::int64_t planes_ = 1;
  std::int64_t extents_[max_rank + 1] = {1, 1};  ///< outermost first, the row last
  std::vector<std::int64_t> steps_;              ///< bytes, by operand, then level
};

}  // namespace deft::ext
