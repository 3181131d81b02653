// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/reducers.hpp: what reductions fold with.
#pragma once
#include <deft/graph/op_def.hpp>
#include <deft/kernels/cpu/pack.hpp>
#include <limits>

namespace deft::ext::cpu {

/// A row is folded into so many lanes side by side.
template <class T>
inline constexpr int fold_lanes = 4 * register_bytes / static_cast<int>(sizeof(T));

/// What is folded with: sums, where integers wrap.
struct plus {
  template <class T>
  static constexpr T nothing() {
    return T(0);
  }
  /// What leaves every value as it is, zeros of either sign too.
  template <class T>
  static constexpr T identity() {
    return is_floating_type<T> ? -T(0) : T(0);
  }
  template <class V>
  static DEFT_ALWAYS_INLINE V combine(const V& a, const V& b) {
    if constexpr (element<V>)
      return (num::lane<V>(a) + b).v;
    else
      return a + b;
  }
};
/// The largest; NaN goes through.
struct largest {
  template <class T>
  static constexpr T nothing() {
    return least_of<T>;
  }
  template <class T>
  static constexpr T identity() {
    return nothing<T>();
  }
  template <class V>
  static DEFT_ALWAYS_INLINE V combine(const V& a, const V& b) {
    if constexpr (element<V>)
      return num::maximum(num::lane<V>(a), b).v;
    else
      return num::maximum(a, b);
  }
};
/// The smallest; NaN goes through.
struct smallest {
  template <class T>
  static constexpr T nothing() {
    return greatest_of<T>;
  }
  template <class T>
  static constexpr T identity() {
    return nothing<T>();
  }
  template <class V>
  static DEFT_ALWAYS_INLINE V combine(const V& a, const V& b) {
    if constexpr (element<V>)
      return num::minimum(num::lane<V>(a), b).v;
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

}  // namespace deft::ext::cpu
