// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/reducers.hpp: what reductions fold with, on the processor and on GPUs.
#pragma once
#include <deft/core/num_lane.hpp>
#include <deft/graph/op_def.hpp>

namespace deft::ext {

// `nothing` is the fold of no elements, `neutral` leaves every value as it is. `combine` takes
// numbers, or packs of them.

/// Sums, where integers wrap. What leaves zeros of either sign, too, is a negative zero.
struct plus {
  static constexpr fold_kind kind = fold_kind::sum;

  template <class T>
  static DEFT_HD constexpr T nothing() {
    return T(0);
  }
  template <class T>
  static DEFT_HD constexpr T neutral() {
    return is_floating_type<T> ? -T(0) : T(0);
  }
  template <class V>
  static DEFT_ALWAYS_INLINE DEFT_HD V combine(const V& a, const V& b) {
    if constexpr (element<V>)
      return (num::lane<V>(a) + num::lane<V>(b)).v;
    else
      return a + b;
  }
};
/// Products, where integers wrap.
struct times {
  template <class T>
  static DEFT_HD constexpr T nothing() {
    return T(1);
  }
  template <class T>
  static DEFT_HD constexpr T neutral() {
    return T(1);
  }
  template <class V>
  static DEFT_ALWAYS_INLINE DEFT_HD V combine(const V& a, const V& b) {
    if constexpr (element<V>)
      return (num::lane<V>(a) * num::lane<V>(b)).v;
    else
      return a * b;
  }
};
/// The largest; NaN goes through.
struct largest {
  static constexpr fold_kind kind = fold_kind::max;

  template <class T>
  static DEFT_HD constexpr T nothing() {
    return least_of<T>;
  }
  template <class T>
  static DEFT_HD constexpr T neutral() {
    return least_of<T>;
  }
  template <class V>
  static DEFT_ALWAYS_INLINE DEFT_HD V combine(const V& a, const V& b) {
    if constexpr (element<V>)
      return num::maximum(num::lane<V>(a), num::lane<V>(b)).v;
    else
      return num::maximum(a, b);
  }
};
/// The smallest; NaN goes through.
struct smallest {
  static constexpr fold_kind kind = fold_kind::min;

  template <class T>
  static DEFT_HD constexpr T nothing() {
    return greatest_of<T>;
  }
  template <class T>
  static DEFT_HD constexpr T neutral() {
    return greatest_of<T>;
  }
  template <class V>
  static DEFT_ALWAYS_INLINE DEFT_HD V combine(const V& a, const V& b) {
    if constexpr (element<V>)
      return num::minimum(num::lane<V>(a), num::lane<V>(b)).v;
    else
      return num::minimum(a, b);
  }
};

/// How elements are folded, by the kind of reduction; a mean is a sum.
template <fold_kind Kind>
struct join_of {
  using type = plus;
};
template <>
struct join_of<fold_kind::max> {
  using type = largest;
};
template <>
struct join_of<fold_kind::min> {
  using type = smallest;
};

}  // namespace deft::ext
