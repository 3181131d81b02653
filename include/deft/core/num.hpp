// SPDX-License-Identifier: Apache-2.0
// deft/core/num.hpp: the language of elementwise bodies: operators and functions of deft's value
// types, which are one lane (num_lane.hpp, on the host and on CUDA), a pack of
// lanes (kernels/cpu/pack.hpp) and text (num_text.hpp).
#pragma once
#include <concepts>
#include <deft/core/config.hpp>
#include <deft/core/dtype.hpp>
#include <type_traits>

namespace deft::ext::num {

/// A type that bodies compute with. Never a bare float or int, whose products the compiler may
/// contract with sums, and whose overflow is undefined: one lane of T is num::lane<T>.
template <class V>
concept value = requires {
  typename V::mask_type;
};

/// The result of comparing two V.
template <value V>
using mask_t = typename V::mask_type;

/// The dtype's C++ type of V's lanes.
template <value V>
using element_t = typename V::element_type;

/// The operations on V, specialised next to each value type. Integers wrap and their division by
/// zero is an error; maximum and minimum return NaN if either is, and the first of equal
/// values; a product is rounded before it is added to anything.
template <class V>
struct math {
  static_assert(value<V>,
                "[num] a body computes with deft's value types, not with a bare number: "
                "num::lane<T>(x)");
};

/// Base of V: its operators, which also take C++ numbers as constants, as in `1 - x`.
/// M is V's mask_type; V's of bool, and masks, have `&&`, `||` and `!`, which evaluate both sides.
// Inlined always: a pack that is passed to a function goes through memory.
template <class V, class M>
struct operators {
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr V operator+(V a, V b) { return math<V>::add(a, b); }
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr V operator-(V a, V b) { return math<V>::sub(a, b); }
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr V operator*(V a, V b) { return math<V>::mul(a, b); }
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr V operator/(V a, V b) { return math<V>::div(a, b); }
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr V operator%(V a, V b) { return math<V>::mod(a, b); }
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr V operator-(V a) { return math<V>::neg(a); }

  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr M operator<(V a, V b) { return math<V>::less(a, b); }
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr M operator>(V a, V b) { return math<V>::less(b, a); }
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr M operator<=(V a, V b) {
    return math<V>::less_equal(a, b);
  }
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr M operator>=(V a, V b) {
    return math<V>::less_equal(b, a);
  }
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr M operator==(V a, V b) {
    return math<V>::equal(a, b);
  }
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr M operator!=(V a, V b) {
    return math<M>::logical_not(math<V>::equal(a, b));
  }

  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr V operator&&(V a, V b) {
    return math<V>::logical_and(a, b);
  }
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr V operator||(V a, V b) {
    return math<V>::logical_or(a, b);
  }
  friend DEFT_HD DEFT_ALWAYS_INLINE constexpr V operator!(V a) { return math<V>::logical_not(a); }
};

template <class V>
DEFT_HD DEFT_ALWAYS_INLINE V exp(V x) {
  return math<V>::exp(x);
}
/// exp(x) - 1, accurate for small x.
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE V expm1(V x) {
  return math<V>::expm1(x);
}
/// The natural logarithm.
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE V log(V x) {
  return math<V>::log(x);
}
/// log(1 + x), accurate for small x.
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE V log1p(V x) {
  return math<V>::log1p(x);
}
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE V tanh(V x) {
  return math<V>::tanh(x);
}
/// The error function.
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE V erf(V x) {
  return math<V>::erf(x);
}
/// exp(x^2) (1 - erf(x)) of an x that is not negative: neither part underflows by itself.
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE V erfcx(V x) {
  return math<V>::erfcx(x);
}
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE V sin(V x) {
  return math<V>::sin(x);
}
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE V cos(V x) {
  return math<V>::cos(x);
}
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE V sqrt(V x) {
  return math<V>::sqrt(x);
}
/// x to the power of y, as std::pow.
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE V pow(V x, std::type_identity_t<V> y) {
  return math<V>::pow(x, y);
}
/// The largest integer that is not above x.
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE V floor(V x) {
  return math<V>::floor(x);
}
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE constexpr V abs(V x) {
  return math<V>::abs(x);
}
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE constexpr V maximum(V x, std::type_identity_t<V> y) {
  return math<V>::maximum(x, y);
}
template <class V>
DEFT_HD DEFT_ALWAYS_INLINE constexpr V minimum(V x, std::type_identity_t<V> y) {
  return math<V>::minimum(x, y);
}
/// In each lane x where c is true, else y; both are evaluated. c is a mask, or of bool.
template <class M, class V>
DEFT_HD DEFT_ALWAYS_INLINE constexpr V select(M c, V x, std::type_identity_t<V> y) {
  return math<M>::select(c, x, y);
}
/// Lanes of another dtype. Float to integer saturates and takes NaN to 0; integers wrap; bool is
/// whether the value is not zero.
template <element To, class V>
DEFT_HD DEFT_ALWAYS_INLINE constexpr auto cast(V x) {
  return math<V>::template cast<To>(x);
}

/// Keeps the compiler from contracting a product and a sum, whatever its flags.
template <class T>
DEFT_HD DEFT_ALWAYS_INLINE constexpr T rounded(T product) {
#if defined(__GNUC__) && !defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
#if defined(__x86_64__)
    asm("" : "+v"(product));
#elif defined(__aarch64__)
    asm("" : "+w"(product));
#else
    asm("" : "+m"(product));
#endif
  }
#endif
  return product;
}

}  // namespace deft::ext::num
