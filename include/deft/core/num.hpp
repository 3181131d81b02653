// SPDX-License-Identifier: Apache-2.0
// deft/core/num.hpp: the arithmetic that bodies of elementwise operations are written in, on
// scalars here and on packs in execute/.
#pragma once
#include <cmath>
#include <deft/core/config.hpp>
#include <deft/core/dtype.hpp>
#include <limits>
#include <type_traits>

namespace deft::num {

/// What a comparison of two V gives: bool for scalars, a mask for packs.
template <class V>
struct mask_of {
  using type = bool;
};
template <class V>
using mask_t = typename mask_of<V>::type;

/// The element type of a scalar or a pack.
template <class V>
struct element_of {
  using type = V;
};
template <class V>
using element_t = typename element_of<V>::type;

/// Out of line, so that kernels stay small.
[[noreturn]] DEFT_NOINLINE inline void division_by_zero(const char* op) {
  fail(errc::invalid_argument, "[", op, "] integer division by zero");
}

/// The operations on V; the primary template serves scalars.
template <class V>
struct math {
  using U = std::make_unsigned_t<
      std::conditional_t<std::is_integral_v<V> && !std::is_same_v<V, bool>, V, int>>;
  static constexpr bool floating = std::is_floating_point_v<V>;

  // Integers wrap: through the unsigned type, where overflow is defined.
  static DEFT_HD constexpr V add(V a, V b) {
    if constexpr (floating)
      return a + b;
    else
      return static_cast<V>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  }
  static DEFT_HD constexpr V sub(V a, V b) {
    if constexpr (floating)
      return a - b;
    else
      return static_cast<V>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
  }
  static DEFT_HD constexpr V mul(V a, V b) {
    if constexpr (floating)
      return a * b;
    else
      return static_cast<V>(
          static_cast<U>(static_cast<U>(a) * static_cast<std::uint64_t>(static_cast<U>(b))));
  }
  static constexpr V div(V a, V b) {
    if constexpr (floating)
      return a / b;
    else {
      if (b == 0) division_by_zero("div");
      if constexpr (std::is_signed_v<V>)
        if (b == -1) return sub(0, a);  // the smallest integer wraps
      return static_cast<V>(a / b);
    }
  }
  /// Of integers.
  static constexpr V mod(V a, V b) {
    if (b == 0) division_by_zero("mod");
    if constexpr (std::is_signed_v<V>)
      if (b == -1) return 0;  // where the quotient would overflow, too
    return static_cast<V>(a % b);
  }
  static DEFT_HD constexpr V neg(V a) {
    if constexpr (floating)
      return -a;
    else
      return sub(0, a);
  }
  static V exp(V a) { return std::exp(a); }
  static V log(V a) { return std::log(a); }
  static V log1p(V a) { return std::log1p(a); }
  static V tanh(V a) { return std::tanh(a); }
  static V sqrt(V a) { return std::sqrt(a); }
  static constexpr V abs(V a) {
    if constexpr (std::is_unsigned_v<V>)
      return a;
    else
      return a < 0 ? neg(a) : a;
  }
  // NaN goes through, whichever side it is on; of equal values (0 and -0) the first.
  static constexpr V maximum(V a, V b) {
    if constexpr (floating)
      return b > a || b != b ? b : a;
    else
      return b > a ? b : a;
  }
  static constexpr V minimum(V a, V b) {
    if constexpr (floating)
      return b < a || b != b ? b : a;
    else
      return b < a ? b : a;
  }
  static constexpr bool less(V a, V b) { return a < b; }
  static constexpr bool less_equal(V a, V b) { return a <= b; }
  static constexpr bool equal(V a, V b) { return a == b; }
  static constexpr V constant(double c) { return static_cast<V>(c); }

  // As a mask: V is bool.
  static constexpr V logical_and(V a, V b) { return a && b; }
  static constexpr V logical_or(V a, V b) { return a || b; }
  static constexpr V logical_not(V a) { return !a; }
  template <class W>
  static constexpr W select(V c, W a, W b) {
    return c ? a : b;
  }
};

// Inlined always: a pack that is passed to a function goes through memory.
template <class V>
DEFT_ALWAYS_INLINE constexpr V add(V a, V b) {
  return math<V>::add(a, b);
}
template <class V>
DEFT_ALWAYS_INLINE constexpr V sub(V a, V b) {
  return math<V>::sub(a, b);
}
template <class V>
DEFT_ALWAYS_INLINE constexpr V mul(V a, V b) {
  return math<V>::mul(a, b);
}
template <class V>
DEFT_ALWAYS_INLINE constexpr V div(V a, V b) {
  return math<V>::div(a, b);
}
template <class V>
DEFT_ALWAYS_INLINE constexpr V mod(V a, V b) {
  return math<V>::mod(a, b);
}
template <class V>
DEFT_ALWAYS_INLINE constexpr V neg(V a) {
  return math<V>::neg(a);
}
template <class V>
DEFT_ALWAYS_INLINE V exp(V a) {
  return math<V>::exp(a);
}
template <class V>
DEFT_ALWAYS_INLINE V log(V a) {
  return math<V>::log(a);
}
template <class V>
DEFT_ALWAYS_INLINE V log1p(V a) {
  return math<V>::log1p(a);
}
template <class V>
DEFT_ALWAYS_INLINE V tanh(V a) {
  return math<V>::tanh(a);
}
template <class V>
DEFT_ALWAYS_INLINE V sqrt(V a) {
  return math<V>::sqrt(a);
}
template <class V>
DEFT_ALWAYS_INLINE constexpr V abs(V a) {
  return math<V>::abs(a);
}
template <class V>
DEFT_ALWAYS_INLINE constexpr V maximum(V a, V b) {
  return math<V>::maximum(a, b);
}
template <class V>
DEFT_ALWAYS_INLINE constexpr V minimum(V a, V b) {
  return math<V>::minimum(a, b);
}
template <class V>
DEFT_ALWAYS_INLINE constexpr mask_t<V> less(V a, V b) {
  return math<V>::less(a, b);
}
template <class V>
DEFT_ALWAYS_INLINE constexpr mask_t<V> less_equal(V a, V b) {
  return math<V>::less_equal(a, b);
}
template <class V>
DEFT_ALWAYS_INLINE constexpr mask_t<V> equal(V a, V b) {
  return math<V>::equal(a, b);
}

// Masks, or values of bool.
template <class M>
DEFT_ALWAYS_INLINE constexpr M logical_and(M a, M b) {
  return math<M>::logical_and(a, b);
}
template <class M>
DEFT_ALWAYS_INLINE constexpr M logical_or(M a, M b) {
  return math<M>::logical_or(a, b);
}
template <class M>
DEFT_ALWAYS_INLINE constexpr M logical_not(M a) {
  return math<M>::logical_not(a);
}
template <class M, class V>
DEFT_ALWAYS_INLINE constexpr V select(M c, V a, V b) {
  return math<M>::select(c, a, b);
}

/// A constant in every lane.
template <class V>
DEFT_ALWAYS_INLINE constexpr V constant(double c) {
  return math<V>::constant(c);
}

/// To another element type. Float to integer saturates and takes NaN to 0; integers wrap; bool is
/// whether the value is not zero.
template <element To, element From>
constexpr To cast_scalar(From v) {
  if constexpr (std::is_same_v<To, From>)
    return v;
  else if constexpr (std::is_same_v<To, bool>)
    return v != From(0);
  else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (v != v) return 0;
    // The bounds as From: the largest integer may round up to one beyond it.
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
    constexpr From high = static_cast<From>(std::numeric_limits<To>::max());
    if (v <= low) return std::numeric_limits<To>::min();
    if (v >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(v);
  } else
    return static_cast<To>(v);
}

/// num::cast<To>(v): the same for scalars and packs; V of the result is math's business.
template <class V>
struct caster {
  template <element To>
  static constexpr To cast(V v) {
    return cast_scalar<To>(v);
  }
};
template <element To, class V>
DEFT_ALWAYS_INLINE constexpr auto cast(V v) {
  return caster<V>::template cast<To>(v);
}

}  // namespace deft::num
