// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/row_layout.ipp: layouts of broadcast operands.
#pragma once
#include <deft/kernels/spec/row_layout.hpp>

namespace deft::ext {

row_layout::row_layout(std::span<const tensor_type> in, const tensor_type& out)
    : operands_(in.size()) {
  // Dimensions from the outermost on, merged while every operand either has both or neither.
  std::vector<bool> has(operands_), before;
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
  // At least a row in a plane. A single element counts as there for everyone.
  for (; levels_ < 2; ++levels_) {
    for (std::size_t l = levels_; l > 0; --l) extents_[l] = extents_[l - 1];
    extents_[0] = 1;
    present.insert(present.begin(), std::vector<bool>(operands_, true));
  }
  planes_ = 1;
  for (std::size_t l = 0; l + 2 < levels_; ++l) planes_ *= extents_[l];
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

void row_layout::addresses(std::int64_t plane, const void* const* base, const char** at) const {
  for (std::size_t k = 0; k < operands_; ++k) at[k] = static_cast<const char*>(base[k]);
  for (std::size_t l = levels_ - 2; l-- > 0; plane /= extents_[l])
    for (std::size_t k = 0; k < operands_; ++k)
      at[k] += plane % extents_[l] * steps_[k * levels_ + l];
}

}  // namespace deft::ext
