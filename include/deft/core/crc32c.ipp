// SPDX-License-Identifier: Apache-2.0
// deft/core/crc32c.ipp: by the processor's instruction where it has one, else by Boost's tables.
#pragma once
#include <boost/crc.hpp>
#include <cstring>
#include <deft/core/crc32c.hpp>
#include <string>
#ifdef __x86_64__
#include <nmmintrin.h>
#endif

namespace deft {
namespace {

std::uint32_t crc32c_by_tables(std::string_view bytes, std::uint32_t before) {
  boost::crc_optimal<32, 0x1EDC6F41, 0, 0xFFFFFFFF, true, true> crc(~before);
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
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
#endif

/// The product of two polynomials modulo that of the checksum; bit 31 is the coefficient of x^0.
std::uint32_t crc32c_product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 1u << 31; bit; bit >>= 1) {
    if (a & bit) product ^= b;
    b = b & 1 ? b >> 1 ^ 0x82F63B78u : b >> 1;
  }
  return product;
}

}  // namespace

std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second, std::uint64_t bytes) {
  std::uint32_t power = 1u << 23;  // x^8, squared again and again
  for (; bytes; bytes >>= 1, power = crc32c_product(power, power))
    if (bytes & 1) first = crc32c_product(first, power);
  return first ^ second;
}

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
#ifdef __x86_64__
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return crc32c_by_instruction(bytes, before);
#endif
  return crc32c_by_tables(bytes, before);
}

}  // namespace deft
