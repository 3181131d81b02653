// SPDX-License-Identifier: Apache-2.0
// deft/core/half.hpp: the floating-point formats of 16 bits, as they are in files.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deft/core/element_type.hpp>

namespace deft::ext {

/// The value of an IEEE 754 binary16 number. Exact, as float has all of them; the bits of a NaN are
/// kept.
constexpr float from_float16(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31u,
                      fraction = half & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

/// The value of a bfloat16 number: the upper half of a float.
constexpr float from_bfloat16(std::uint16_t upper) {
  return std::bit_cast<float>(std::uint32_t{upper} << 16);
}

/// The closest binary16 number, of two the even one: infinity from 65520, NaN as 0x7e00.
constexpr std::uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7e00;
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  std::uint32_t half = 0;
  if (magnitude < 0x38800000u)  // a multiple of 2^-24, to which the sum is rounded
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  else
    half = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
  return static_cast<std::uint16_t>(sign | half);
}

/// The closest bfloat16 number, of two the even one; NaN as 0x7fc0.
constexpr std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

/// How arrays hold the elements of a file.
struct stored_elements {
  dtype type = dtype::none;  ///< of the array
  std::size_t size = 0;      ///< bytes of an element in the file
  ///@{
  /// `n` elements from the file, at any address, and back, where the array has a float for each of
  /// 16 bits; else null: the file has what the array has.
  void (*widen)(const void* from, std::size_t n, float* to) = nullptr;
  void (*narrow)(const float* from, std::size_t n, std::uint16_t* to) = nullptr;
  ///@}
};

}  // namespace deft::ext

namespace deft::detail {

template <float (*Convert)(std::uint16_t)>
void widen(const void* from, std::size_t n, float* to) {
  const auto* const bytes = static_cast<const char*>(from);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes + sizeof half * i, sizeof half);
    to[i] = Convert(half);
  }
}
template <std::uint16_t (*Convert)(float)>
void narrow(const float* from, std::size_t n, std::uint16_t* to) {
  for (std::size_t i = 0; i < n; ++i) to[i] = Convert(from[i]);
}

}  // namespace deft::detail

namespace deft::ext {

/// Floats that a file has in 16 bits.
/// @{
inline constexpr stored_elements float_in_float16{dtype::float32, 2, detail::widen<from_float16>,
                                                  detail::narrow<to_float16>};
inline constexpr stored_elements float_in_bfloat16{dtype::float32, 2, detail::widen<from_bfloat16>,
                                                   detail::narrow<to_bfloat16>};
/// @}
/// What elements of 16 bits are once they are read, in files of every format: floats.
/// @{
inline constexpr stored_elements stored_float16 = float_in_float16;
inline constexpr stored_elements stored_bfloat16 = float_in_bfloat16;
/// @}

}  // namespace deft::ext
