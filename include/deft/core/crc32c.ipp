// SPDX-License-Identifier: Apache-2.0
// deft/core/crc32c.ipp: by carry-less products of vectors or the processor's instruction, where it
// has them, else by Boost's tables.
#pragma once
#include <boost/crc.hpp>
#include <cstring>
#include <deft/core/crc32c.hpp>
#include <string>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace deft {
namespace {

/// The product of two polynomials modulo that of the checksum; bit 31 is the coefficient of x^0.
constexpr std::uint32_t crc32c_product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 1u << 31; bit; bit >>= 1) {
    if (a & bit) product ^= b;
    b = b & 1 ? b >> 1 ^ 0x82F63B78u : b >> 1;
  }
  return product;
}

/// x^n modulo that polynomial, in the same form.
constexpr std::uint32_t crc32c_power(std::uint64_t n) {
  std::uint32_t power = 1u << 31;
  for (std::uint32_t square = 1u << 30; n; n >>= 1, square = crc32c_product(square, square))
    if (n & 1) power = crc32c_product(power, square);
  return power;
}

#ifdef __x86_64__
/// The register of a checksum after these bytes.
[[gnu::target("sse4.2")]] std::uint64_t crc32c_advance(std::uint64_t crc, const char* at,
                                                       std::size_t bytes) {
  for (; bytes >= 8; at += 8, bytes -= 8) {
    std::uint64_t eight;
    std::memcpy(&eight, at, 8);
    crc = _mm_crc32_u64(crc, eight);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (; bytes > 0; ++at, --bytes) rest = _mm_crc32_u8(rest, static_cast<unsigned char>(*at));
  return rest;
}

/// What a number of zero bytes makes of a register: a linear map, as a table for each of its bytes.
class zero_bytes {
 public:
  explicit zero_bytes(std::size_t n) {
    const std::string zeros(n, '\0');
    for (std::size_t byte = 0; byte < 4; ++byte)
      for (std::size_t bit = 0; bit < 8; ++bit) {
        const auto image = static_cast<std::uint32_t>(
            crc32c_advance(std::uint64_t{1} << (8 * byte + bit), zeros.data(), n));
        for (std::size_t v = 0; v < 256; ++v)
          if (v >> bit & 1) table_[byte][v] ^= image;
      }
  }
  std::uint64_t operator()(std::uint64_t crc) const {
    return table_[0][crc & 255] ^ table_[1][crc >> 8 & 255] ^ table_[2][crc >> 16 & 255] ^
           table_[3][crc >> 24 & 255];
  }

 private:
  std::uint32_t table_[4][256] = {};
};

/// The instruction takes three cycles, and one can begin in each: three blocks at a time.
[[gnu::target("sse4.2")]] std::uint32_t crc32c_by_instruction(std::string_view bytes,
                                                              std::uint32_t before) {
  constexpr std::size_t block = 4096;
  std::uint64_t crc = ~before;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  if (left >= 3 * block) {
    static const auto& after_block = *new zero_bytes(block);
    for (; left >= 3 * block; at += 3 * block, left -= 3 * block) {
      std::uint64_t second = 0, third = 0;
      for (std::size_t i = 0; i < block; i += 8) {
        std::uint64_t eight[3];
        std::memcpy(&eight[0], at + i, 8);
        std::memcpy(&eight[1], at + block + i, 8);
        std::memcpy(&eight[2], at + 2 * block + i, 8);
        crc = _mm_crc32_u64(crc, eight[0]);
        second = _mm_crc32_u64(second, eight[1]);
        third = _mm_crc32_u64(third, eight[2]);
      }
      crc = after_block(after_block(crc) ^ second) ^ third;
    }
  }
  return ~static_cast<std::uint32_t>(crc32c_advance(crc, at, left));
}

/// For each 16 bytes of a vector, what its halves are multiplied by to be `bytes` bytes further
/// from the end. (Gopal et al.: Fast CRC computation for generic polynomials using PCLMULQDQ,
/// Intel, 2009; a product of reflected polynomials is one bit too low.)
template <std::uint64_t bytes>
[[gnu::target("avx512f")]] __m512i crc32c_distance() {
  constexpr auto first = static_cast<long long>(std::uint64_t{crc32c_power(8 * bytes + 63)} << 32),
                 second = static_cast<long long>(std::uint64_t{crc32c_power(8 * bytes - 1)} << 32);
  return _mm512_set_epi64(second, first, second, first, second, first, second, first);
}

/// A vector that has the remainder of `before`, that distance before `here`, and `here`.
[[gnu::target("avx512f,vpclmulqdq")]] inline __m512i crc32c_fold(__m512i before, __m512i distance,
                                                                 __m512i here) {
  constexpr int all_three = 0x96;  // exclusive or
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(before, distance, 0x00),
                                   _mm512_clmulepi64_epi128(before, distance, 0x11), here,
                                   all_three);
}

/// A product takes several cycles, and one can begin in each or every other: eight vectors at a
/// time.
[[gnu::target("avx512f,vpclmulqdq,sse4.2")]] std::uint32_t crc32c_by_products(
    std::string_view bytes, std::uint32_t before) {
  constexpr std::size_t vector = 64, at_a_time = 8, block = at_a_time * vector;
  if (bytes.size() < 2 * vector) return crc32c_by_instruction(bytes, before);
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  __m512i sum = _mm512_xor_si512(_mm512_loadu_si512(at),
                                 _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, std::uint32_t{~before}));
  at += vector;
  const __m512i by_vector = crc32c_distance<vector>();
  if (bytes.size() >= 2 * block) {
    __m512i sums[at_a_time] = {sum};
    for (std::size_t i = 1; i < at_a_time; ++i, at += vector) sums[i] = _mm512_loadu_si512(at);
    const __m512i by_block = crc32c_distance<block>();
    for (; end - at >= static_cast<std::ptrdiff_t>(block); at += block)
      for (std::size_t i = 0; i < at_a_time; ++i)
        sums[i] = crc32c_fold(sums[i], by_block, _mm512_loadu_si512(at + i * vector));
    sum = sums[0];
    for (std::size_t i = 1; i < at_a_time; ++i) sum = crc32c_fold(sum, by_vector, sums[i]);
  }
  for (; end - at >= static_cast<std::ptrdiff_t>(vector); at += vector)
    sum = crc32c_fold(sum, by_vector, _mm512_loadu_si512(at));
  char remainder[vector];
  _mm512_storeu_si512(remainder, sum);
  const std::uint64_t crc = crc32c_advance(0, remainder, vector);
  return ~static_cast<std::uint32_t>(crc32c_advance(crc, at, static_cast<std::size_t>(end - at)));
}

using crc32c_function = std::uint32_t (*)(std::string_view, std::uint32_t);

crc32c_function fastest_crc32c() {
  if (!__builtin_cpu_supports("sse4.2")) return detail::crc32c_by_tables;
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq")
             ? crc32c_by_products
             : crc32c_by_instruction;
}
#endif

}  // namespace

std::uint32_t detail::crc32c_by_tables(std::string_view bytes, std::uint32_t before) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return ext::crc32c_joined(before, crc.checksum(), bytes.size());
}

namespace ext {

std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second, std::uint64_t bytes) {
  return crc32c_product(first, crc32c_power(8 * bytes)) ^ second;
}

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
#ifdef __x86_64__
  static const crc32c_function fastest = fastest_crc32c();
  return fastest(bytes, before);
#else
  return detail::crc32c_by_tables(bytes, before);
#endif
}

}  // namespace ext

}  // namespace deft
