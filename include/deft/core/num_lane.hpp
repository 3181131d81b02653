// SPDX-License-Identifier: Apache-2.0
// deft/core/num_lane.hpp: one lane, on the host and on CUDA, and the rules of casts.
#pragma once
#include <cmath>
#include <deft/core/erf.hpp>
#include <deft/core/num.hpp>
#include <limits>

namespace deft::ext::num {

/// One T with deft's arithmetic.
template <element T>
struct lane : operators<lane<T>, lane<bool>> {
  using element_type = T;
  using mask_type = lane<bool>;
  T v;

  lane() = default;
  template <class C>
  requires is_number_type<C> DEFT_HD constexpr lane(C c) : v(static_cast<T>(c)) {}
};

/// Called for an integer division by zero; throws on the host. Out of line, so that kernels stay
/// small.
DEFT_NOINLINE inline DEFT_HD void division_by_zero([[maybe_unused]] const char* op) {
#ifdef __CUDA_ARCH__
  __trap();  // until a launch has an error word, which is set here; the quotient is then 0
#else
  fail(errc::invalid_argument, "[", op, "] integer division by zero");
#endif
}

/// The rules of num::cast for a single number.
template <element To, element From>
DEFT_HD constexpr To cast_scalar(From v) {
  if constexpr (std::is_same_v<To, From>)
    return v;
  else if constexpr (std::is_same_v<To, bool>)
    return v != From(0);
  else if constexpr (is_integer_type<To> && is_floating_type<From>) {
    if (v != v) return 0;
    // The bounds as From: the largest integer may round up to one beyond it.
    constexpr To lowest = least_of<To>, highest = greatest_of<To>;
    constexpr From low = static_cast<From>(lowest), high = static_cast<From>(highest);
    if (v <= low) return lowest;
    if (v >= high) return highest;
    return static_cast<To>(v);
  } else
    return static_cast<To>(v);
}

template <element T>
struct math<lane<T>> {
  using V = lane<T>;
  using U = std::make_unsigned_t<std::conditional_t<is_integer_type<T>, T, int>>;
  static constexpr bool floating = is_floating_type<T>;

  // Integers wrap: through the unsigned type, where overflow is defined.
  static DEFT_HD constexpr V add(V a, V b) {
    if constexpr (floating)
      return a.v + b.v;
    else
      return static_cast<U>(static_cast<U>(a.v) + static_cast<U>(b.v));
  }
  static DEFT_HD constexpr V sub(V a, V b) {
    if constexpr (floating)
      return a.v - b.v;
    else
      return static_cast<U>(static_cast<U>(a.v) - static_cast<U>(b.v));
  }
  static DEFT_HD constexpr V mul(V a, V b) {
    if constexpr (floating) {
#ifdef __CUDA_ARCH__
      if constexpr (std::is_same_v<T, float>)
        return __fmul_rn(a.v, b.v);
      else
        return __dmul_rn(a.v, b.v);
#else
      return rounded(a.v * b.v);
#endif
    } else
      return static_cast<U>(static_cast<std::uint64_t>(static_cast<U>(a.v)) *
                            static_cast<std::uint64_t>(static_cast<U>(b.v)));
  }
  static DEFT_HD constexpr V div(V a, V b) {
    if constexpr (floating)
      return a.v / b.v;
    else {
      if (b.v == 0) return division_by_zero("div"), 0;
      if constexpr (element_type<T>::is_signed)
        if (b.v == -1) return neg(a);  // the smallest integer wraps
      return a.v / b.v;
    }
  }
  static DEFT_HD constexpr V mod(V a, V b) {
    static_assert(!floating, "[mod] the operation expects integers");
    if (b.v == 0) return division_by_zero("mod"), 0;
    if constexpr (element_type<T>::is_signed)
      if (b.v == -1) return 0;  // where the quotient would overflow, too
    return a.v % b.v;
  }
  static DEFT_HD constexpr V neg(V a) {
    if constexpr (floating)
      return -a.v;
    else
      return sub(0, a);
  }
  static DEFT_HD V exp(V a) { return std::exp(a.v); }
  static DEFT_HD V expm1(V a) { return std::expm1(a.v); }
  static DEFT_HD V log(V a) { return std::log(a.v); }
  static DEFT_HD V log1p(V a) { return std::log1p(a.v); }
  static DEFT_HD V tanh(V a) { return std::tanh(a.v); }
  static DEFT_HD V erf(V a) { return std::erf(a.v); }
  static DEFT_HD V erfcx(V a) { return deft::ext::erfcx(a.v); }
  static DEFT_HD V sin(V a) { return std::sin(a.v); }
  static DEFT_HD V cos(V a) { return std::cos(a.v); }
  static DEFT_HD V sqrt(V a) { return std::sqrt(a.v); }
  static DEFT_HD V pow(V a, V b) { return std::pow(a.v, b.v); }
  static DEFT_HD V floor(V a) { return std::floor(a.v); }
  static DEFT_HD constexpr V abs(V a) {
    if constexpr (floating)
      return a.v < 0 ? -a.v : a.v + 0;  // of -0, too
    else if constexpr (!element_type<T>::is_signed)
      return a;
    else
      return a.v < 0 ? neg(a) : a;
  }
  static DEFT_HD constexpr V maximum(V a, V b) {
    if constexpr (floating)
      return b.v > a.v || b.v != b.v ? b : a;
    else
      return b.v > a.v ? b : a;
  }
  static DEFT_HD constexpr V minimum(V a, V b) {
    if constexpr (floating)
      return b.v < a.v || b.v != b.v ? b : a;
    else
      return b.v < a.v ? b : a;
  }
  static DEFT_HD constexpr lane<bool> less(V a, V b) { return a.v < b.v; }
  static DEFT_HD constexpr lane<bool> less_equal(V a, V b) { return a.v <= b.v; }
  static DEFT_HD constexpr lane<bool> equal(V a, V b) { return a.v == b.v; }

  static DEFT_HD constexpr V logical_and(V a, V b) { return a.v && b.v; }
  static DEFT_HD constexpr V logical_or(V a, V b) { return a.v || b.v; }
  static DEFT_HD constexpr V logical_not(V a) { return !a.v; }
  template <class W>
  static DEFT_HD constexpr W select(V c, W a, W b) {
    return c.v ? a : b;
  }
  template <element To>
  static DEFT_HD constexpr lane<To> cast(V a) {
    return cast_scalar<To>(a.v);
  }
};

}  // namespace deft::ext::num
