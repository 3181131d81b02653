// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/order.hpp: cumsum, and sort with the keys that it compares.
#pragma once
#include <bit>
#include <deft/core/num_lane.hpp>
#include <deft/kernels/spec/kernel_spec.hpp>
#include <deft/op/cumsum.hpp>
#include <deft/op/sort.hpp>
#include <limits>

namespace deft::ext::spec {

/// Sums along an axis. They are made of sums within blocks of `block` elements, each from its first
/// element on, to which the sum of the blocks before is added; these are sums of such sums.
class cumsum : public kernel_spec<op::cumsum, numeric_dtypes, by_input<0>> {
 public:
  static constexpr std::int64_t block = 16;

 protected:
  void ready() override {
    outer_ = inner_ = 1;
    const dims& x = in(0);
    for (int i = 0; i < x.rank(); ++i)
      if (i != op_.axis) (i < op_.axis ? outer_ : inner_) *= x[i];
    n_ = x[static_cast<int>(op_.axis)];
  }
  std::int64_t outer_ = 1, n_ = 0, inner_ = 1;
};

/// Rows of n_ elements, of which each gives kept_.
class sort : public kernel_spec<op::sort, numeric_dtypes, by_input<0>> {
 public:
  bool optional_output(int) const override { return true; }

 protected:
  void ready() override {
    n_ = in(0).back();
    kept_ = out().back();
    rows_ = op::without_axis(in(0), in(0).rank() - 1).elements();
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    if (n_ > most)
      fail(errc::unimplemented, "[sort] takes rows of up to ", most, " elements, and got ", n_);
  }
  std::int64_t rows_ = 0, n_ = 0, kept_ = 0;
};

/// An unsigned number in whose order elements of T are sorted: NaN is the greatest, and -0 equals
/// 0.
template <class T>
DEFT_HD inline auto sort_key(T x, bool descending) {
  using bits = std::make_unsigned_t<integer_of<sizeof(T)>>;
  constexpr bits sign = bits(1) << (8 * sizeof(T) - 1);
  bits key;
  if constexpr (is_floating_type<T>) {
    if (x != x) {
      key = static_cast<bits>(-1);
    } else {
      key = std::bit_cast<bits>(x + T(0));
      key = key & sign ? ~key : key | sign;
    }
  } else {
    key = static_cast<bits>(x);
    if constexpr (element_type<T>::is_signed) key ^= sign;
  }
  return static_cast<bits>(descending ? ~key : key);
}

using order_kernels = kernel_list<cumsum, sort>;

}  // namespace deft::ext::spec
