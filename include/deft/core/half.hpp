// SPDX-License-Identifier: Apache-2.0
// deft/core/half.hpp: bfloat16 and float16 (core/element_type.hpp names them), the floating-point
// types of 16 bits. They are stored and not computed with: all arithmetic is that of float.
#pragma once
#include <bit>
#include <cstdint>
#include <deft/core/config.hpp>
#include <limits>
#include <type_traits>

namespace deft {
namespace ext {

/// The rules of conversions. U is an unsigned integer of 32 bits, or a vector of such; `floating`
/// gives the float, or the vector of floats, of the same bits, and `bits` the inverse. Rounding is
/// to nearest, ties to even; numbers below the smallest normal one keep the digits that there are;
/// every NaN becomes the one that is quiet and positive.
namespace half_rules {

/// The upper half of a float.
template <class U>
DEFT_HD DEFT_ALWAYS_INLINE constexpr U to_bfloat16(U x) {
  const U rounded = (x + (x >> 16 & 1u) + 0x7fffu) >> 16;
  return (x & 0x7fffffffu) > 0x7f800000u ? U{} + 0x7fc0u : rounded;
}
template <class U>
DEFT_HD DEFT_ALWAYS_INLINE constexpr U from_bfloat16(U upper) {
  return upper << 16;
}

/// IEEE 754 binary16: 5 bits of exponent and 10 of fraction.
template <class U, class Floating, class Bits>
DEFT_HD DEFT_ALWAYS_INLINE constexpr U to_float16(U x, Floating floating, Bits bits) {
  const U sign = x >> 16 & 0x8000u, magnitude = x & 0x7fffffffu;
  // A carry out of the fraction goes into the exponent, up to that of infinity.
  const U normal = (magnitude - 0x38000000u + (magnitude >> 13 & 1u) + 0xfffu) >> 13;
  // In a sum with 0.5 the last bit of the fraction counts 2^-24, as in subnormal numbers.
  const U subnormal = bits(floating(magnitude) + floating(U{} + 0x3f000000u)) - 0x3f000000u;
  const U finite = magnitude < 0x38800000u ? subnormal : normal;
  const U large = magnitude > 0x7f800000u ? U{} + 0x7e00u : sign | 0x7c00u;
  return magnitude >= 0x47800000u ? large : sign | finite;
}
/// Exact. Of the exponent of infinity the bits of a NaN are kept.
template <class U, class Floating, class Bits>
DEFT_HD DEFT_ALWAYS_INLINE constexpr U from_float16(U half, Floating floating, Bits bits) {
  const U sign = (half & 0x8000u) << 16, magnitude = (half & 0x7fffu) << 13;
  const U finite = bits(floating(magnitude) * floating(U{} + 0x77800000u));  // 2^112
  return sign | (magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : finite);
}

}  // namespace half_rules

/// The same of one number.
/// @{
DEFT_HD constexpr std::uint16_t to_bfloat16(float v) {
  return static_cast<std::uint16_t>(half_rules::to_bfloat16(std::bit_cast<std::uint32_t>(v)));
}
DEFT_HD constexpr float from_bfloat16(std::uint16_t upper) {
  return std::bit_cast<float>(half_rules::from_bfloat16(std::uint32_t{upper}));
}
DEFT_HD constexpr std::uint16_t to_float16(float v) {
  return static_cast<std::uint16_t>(half_rules::to_float16(
      std::bit_cast<std::uint32_t>(v), [](std::uint32_t x) { return std::bit_cast<float>(x); },
      [](float x) { return std::bit_cast<std::uint32_t>(x); }));
}
DEFT_HD constexpr float from_float16(std::uint16_t half) {
  return std::bit_cast<float>(half_rules::from_float16(
      std::uint32_t{half}, [](std::uint32_t x) { return std::bit_cast<float>(x); },
      [](float x) { return std::bit_cast<std::uint32_t>(x); }));
}
/// @}

/// `v` as a float on the way to a type of 16 bits: where it has to be rounded its last bit is set,
/// so that the second rounding sees that there was more.
DEFT_HD constexpr float rounded_to_odd(double v) {
  const auto nearest = static_cast<float>(v);
  if (nearest == v || v != v) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if ((nearest > v) == (v > 0)) --bits;  // towards 0
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace ext

namespace detail {

/// A type of 16 bits; `Rules` converts them from float and to float.
template <class Rules>
class half {
 public:
  half() = default;
  /// Rounds to nearest, ties to even.
  template <class N>
  requires std::is_arithmetic_v<N> DEFT_HD constexpr half(N v) : bits_(Rules::from(as_float(v))) {}
  template <class Other>
  requires(!std::is_same_v<Other, Rules>) DEFT_HD constexpr explicit half(half<Other> v)
      : half(static_cast<float>(v)) {}
  /// Exact.
  DEFT_HD constexpr operator float() const { return Rules::to(bits_); }

  static DEFT_HD constexpr half from_bits(std::uint16_t bits) {
    half h{};
    h.bits_ = bits;
    return h;
  }
  DEFT_HD constexpr std::uint16_t bits() const { return bits_; }

 private:
  template <class N>
  static DEFT_HD constexpr float as_float(N v) {
    if constexpr (std::is_floating_point_v<N> && sizeof(N) > sizeof(float))
      return ext::rounded_to_odd(static_cast<double>(v));
    else
      return static_cast<float>(v);
  }
  std::uint16_t bits_;
};

struct bfloat16_rules {
  static DEFT_HD constexpr std::uint16_t from(float v) { return ext::to_bfloat16(v); }
  static DEFT_HD constexpr float to(std::uint16_t bits) { return ext::from_bfloat16(bits); }
};
struct float16_rules {
  static DEFT_HD constexpr std::uint16_t from(float v) { return ext::to_float16(v); }
  static DEFT_HD constexpr float to(std::uint16_t bits) { return ext::from_float16(bits); }
};

}  // namespace detail

namespace ext {

/// Whether T is bfloat16 or float16.
template <class T>
inline constexpr bool is_half_type = false;
template <class Rules>
inline constexpr bool is_half_type<deft::detail::half<Rules>> = true;

/// A C++ number: what expressions and arrays take as an element or a constant.
template <class T>
inline constexpr bool is_number_type = std::is_arithmetic_v<T> || is_half_type<T>;

}  // namespace ext
}  // namespace deft

template <>
class std::numeric_limits<deft::detail::half<deft::detail::bfloat16_rules>>
    : public std::numeric_limits<float> {
  using T = deft::detail::half<deft::detail::bfloat16_rules>;

 public:
  static constexpr int digits = 8, digits10 = 2, max_digits10 = 4;
  static constexpr T min() noexcept { return T::from_bits(0x0080); }
  static constexpr T max() noexcept { return T::from_bits(0x7f7f); }
  static constexpr T lowest() noexcept { return T::from_bits(0xff7f); }
  static constexpr T epsilon() noexcept { return T::from_bits(0x3c00); }
  static constexpr T round_error() noexcept { return T::from_bits(0x3f00); }
  static constexpr T infinity() noexcept { return T::from_bits(0x7f80); }
  static constexpr T quiet_NaN() noexcept { return T::from_bits(0x7fc0); }
  static constexpr T denorm_min() noexcept { return T::from_bits(0x0001); }
};
template <>
class std::numeric_limits<deft::detail::half<deft::detail::float16_rules>>
    : public std::numeric_limits<float> {
  using T = deft::detail::half<deft::detail::float16_rules>;

 public:
  static constexpr int digits = 11, digits10 = 3, max_digits10 = 5;
  static constexpr int min_exponent = -13, min_exponent10 = -4;
  static constexpr int max_exponent = 16, max_exponent10 = 4;
  static constexpr T min() noexcept { return T::from_bits(0x0400); }
  static constexpr T max() noexcept { return T::from_bits(0x7bff); }
  static constexpr T lowest() noexcept { return T::from_bits(0xfbff); }
  static constexpr T epsilon() noexcept { return T::from_bits(0x1400); }
  static constexpr T round_error() noexcept { return T::from_bits(0x3800); }
  static constexpr T infinity() noexcept { return T::from_bits(0x7c00); }
  static constexpr T quiet_NaN() noexcept { return T::from_bits(0x7e00); }
  static constexpr T denorm_min() noexcept { return T::from_bits(0x0001); }
};
