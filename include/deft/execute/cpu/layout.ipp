// SPDX-License-Identifier: Apache-2.0
// deft/execute/cpu/layout.ipp: layouts of broadcast operands.
#pragma once
#include <deft/execute/cpu/layout.hpp>

namespace deft::cpu {

row_layout::row_layout(std::span<const tensor_type> in, const tensor_type& out)
    : operands_(in.size()) {
  // Dimensions from the outermost on, merged while every operand either has both or neither.
  std::vector<bool> has(operands_), before(operands_);
  std::vector<std::vector<bool>> present;
  levels_ = 0;
  for (int d = 0; d < out.shape.rank(); ++d) {
    const std::int64_t extent = out.shape[d];
    if (extent == 1) continue;
    for (std::size_t k = 0; k < operands_; ++k) {
      const int own = d - (out.shape.rank() - in[k].shape.rank());
      has[k] = own >= 0 && in[k].shape[own] != 1;
    }
    if (levels_ > 0 && has == before) {
      extents_[levels_ - 1] *= extent;
    } else {
      extents_[levels_++] = extent;
      present.push_back(has);
    }
    before = has;
  }
  if (levels_ == 0) {
    levels_ = 1;
    extents_[0] = 1;
    present.push_back(std::vector<bool>(operands_, true));
  }
  n_ = extents_[levels_ - 1];
  rows_ = 1;
  for (std::size_t l = 0; l + 1 < levels_; ++l) rows_ *= extents_[l];
  steps_.resize(operands_ * levels_);
  for (std::size_t k = 0; k < operands_; ++k) {
    auto step = static_cast<std::int64_t>(size_of_dtype(in[k].type));
    for (std::size_t l = levels_; l-- > 0;)
      if (present[l][k]) {
        steps_[k * levels_ + l] = step;
        step *= extents_[l];
      }
  }
}

row_layout::cursor::cursor(const row_layout& l, const void* const* base, const char** at,
                           std::int64_t row)
    : layout_(l), at_(at) {
  for (std::size_t k = 0; k < l.operands_; ++k) at[k] = static_cast<const char*>(base[k]);
  for (std::size_t d = l.levels_ - 1; d-- > 0;) {
    index_[d] = row % l.extents_[d];
    row /= l.extents_[d];
    for (std::size_t k = 0; k < l.operands_; ++k) at[k] += index_[d] * l.steps_[k * l.levels_ + d];
  }
}

void row_layout::cursor::next() {
  for (std::size_t d = layout_.levels_ - 1; d-- > 0;) {
    const bool more = ++index_[d] < layout_.extents_[d];
    const std::int64_t moves = more ? 1 : 1 - index_[d];
    for (std::size_t k = 0; k < layout_.operands_; ++k)
      at_[k] += moves * layout_.steps_[k * layout_.levels_ + d];
    if (more) return;
    index_[d] = 0;
  }
}

}  // namespace deft::cpu
