// SPDX-License-Identifier: Apache-2.0
// deft/core/half.hpp: the floating-point formats of 16 bits, as they are in files.
#pragma once
#include <bit>
#include <cstdint>
#include <deft/core/config.hpp>

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

}  // namespace deft::ext
