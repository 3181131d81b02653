// SPDX-License-Identifier: Apache-2.0
// deft/core/stored_elements.hpp: floats that files have in 16 bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deft/core/dtype.hpp>

namespace deft::ext {

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

}  // namespace deft::ext
