// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/long_sum.hpp: sums of many addends in a fixed order, whose rounding error grows
// with the logarithm of their number.
#pragma once
#include <cstdint>
#include <deft/core/config.hpp>
#include <deft/plan/thresholds.hpp>

namespace deft::ext {

using thresholds::addends_together;

/// A sum of addends of type `V`, which has +: numbers, or registers of them, and may be sums of
/// `addends_together` numbers themselves. There are three levels; the last takes all that come.
template <class V>
class long_sum {
 public:
  DEFT_HD explicit long_sum(const V& zero) : low_(zero), middle_(zero), high_(zero) {}

  DEFT_HD void clear() { count_ = 0; }
  DEFT_HD bool empty() const { return count_ == 0; }
  DEFT_HD void add(const V& addend) {
    low_ = count_ % of_low == 0 ? addend : low_ + addend;
    if (++count_ % of_low != 0) return;
    middle_ = count_ % of_middle == of_low ? low_ : middle_ + low_;
    if (count_ % of_middle != 0) return;
    high_ = count_ == of_middle ? middle_ : high_ + middle_;
  }
  /// With `last` after all others.
  DEFT_HD V total(const V& last) const {
    V sum = last;
    if (count_ % of_low != 0) sum = low_ + sum;
    if (count_ % of_middle >= of_low) sum = middle_ + sum;
    if (count_ >= of_middle) sum = high_ + sum;
    return sum;
  }

 private:
  static constexpr std::int64_t of_low = addends_together, of_middle = of_low * addends_together;

  V low_, middle_, high_;  ///< old values where `count_` says that nothing was added
  std::int64_t count_ = 0;
};

/// The sum of addends number 0 to n: `add(sum, begin, end)` adds some to a leaf, which begins with
/// `zero` and has `leaf` addends, or fewer if it is the last.
template <class V, class F>
DEFT_HD DEFT_ALWAYS_INLINE V sum_in_leaves(std::int64_t n, std::int64_t leaf, const V& zero,
                                           F add) {
  V sum = zero;
  if (n <= leaf) {
    add(sum, std::int64_t{0}, n);
    return sum;
  }
  long_sum<V> before(zero);
  std::int64_t i = 0;
  for (; i + leaf < n; i += leaf) {
    add(sum, i, i + leaf);
    before.add(sum);
    sum = zero;
  }
  add(sum, i, n);
  return before.total(sum);
}

}  // namespace deft::ext
