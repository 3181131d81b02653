// SPDX-License-Identifier: Apache-2.0
// deft/core/quantized.ipp: the elements of quantized blocks.
#pragma once
#include <array>
#include <cstring>
#include <deft/core/quantized.hpp>
#include <deft/core/stored_elements.hpp>

namespace deft {
namespace {

float half_at(const unsigned char* p) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof bits);
  return ext::from_float16(bits);
}

// A scale has 11 significant bits and an integer has 8 at most: products are exact, and sums the
// same whether or not the compiler contracts them.

/// The elements `low + d q` of 16 bytes, each with two of 4 bits.
void from_nibbles(const unsigned char* q, float d, float low, float* to) {
  constexpr int half = ext::block_elements / 2;
  for (int i = 0; i < half; ++i) to[i] = d * static_cast<float>(q[i] & 15) + low;
  for (int i = 0; i < half; ++i) to[i + half] = d * static_cast<float>(q[i] >> 4) + low;
}

void from_block(block_format f, const unsigned char* b, float* to) {
  const float d = half_at(b);
  switch (f) {
    case block_format::q4_0:
      return from_nibbles(b + 2, d, -8 * d, to);
    case block_format::q4_1:
      return from_nibbles(b + 4, d, half_at(b + 2), to);
    case block_format::q8_0:
      for (int i = 0; i < ext::block_elements; ++i)
        to[i] = d * static_cast<float>(static_cast<signed char>(b[2 + i]));
  }
}

}  // namespace

std::string_view to_string(block_format f) {
  constexpr std::array<std::string_view, 3> names{"Q4_0", "Q4_1", "Q8_0"};
  return names[static_cast<std::size_t>(f)];
}

void ext::dequantize(block_format f, const void* blocks, std::int64_t n, float* to) {
  const auto* b = static_cast<const unsigned char*>(blocks);
  for (std::int64_t i = 0; i < n; ++i, b += block_bytes(f), to += block_elements)
    from_block(f, b, to);
}

any_array quantized_array::dequantized() const {
  any_array a(dtype::float32, shape_);
  ext::dequantize(format_, blocks(), shape_.elements() / ext::block_elements,
                  a.mutable_data<float>());
  return a;
}

}  // namespace deft
