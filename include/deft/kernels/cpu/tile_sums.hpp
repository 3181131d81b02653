// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/tile_sums.hpp: the sums of a convolution's tile.
#pragma once
#include <algorithm>
#include <deft/kernels/cpu/pack_group.hpp>
#include <deft/kernels/spec/long_sum.hpp>

namespace deft::ext::cpu {

/// The leaves of a tile's sums.
template <class T, int L, int P>
class tile_leaves : public long_sum<pack_group<T, L, P>> {
 public:
  tile_leaves() : long_sum<pack_group<T, L, P>>(pack_group<T, L, P>(T(0))) {}
};

/// The sums of a tile, of products that come in runs of any length: in leaves, which cost more than
/// an addition where they fill all registers.
template <class T, int L, int P>
class tile_sums {
 public:
  static constexpr std::int64_t leaf = thresholds::window_products;

  pack_group<T, L, P> sum{T(0)};

  /// `leaves`, which have no values yet, are for this tile alone until it ends.
  explicit DEFT_ALWAYS_INLINE tile_sums(tile_leaves<T, L, P>& leaves) : leaves_(leaves) {}

  /// How many products may be added to `sum` now, at most n, which are then said to be.
  DEFT_ALWAYS_INLINE std::int64_t take(std::int64_t n) {
    const std::int64_t some = std::min(n, left_);
    left_ -= some;
    return some;
  }
  /// After they were added.
  DEFT_ALWAYS_INLINE void added() {
    if (left_ > 0) return;
    leaves_.add(sum);
    sum = pack_group<T, L, P>(T(0));
    left_ = leaf;
  }
  DEFT_ALWAYS_INLINE void end() {
    if (leaves_.empty()) return;
    sum = leaves_.total(sum);
    leaves_.clear();
  }

 private:
  tile_leaves<T, L, P>& leaves_;
  std::int64_t left_ = leaf;
};

}  // namespace deft::ext::cpu
