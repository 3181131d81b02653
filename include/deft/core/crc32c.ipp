// SPDX-License-Identifier: Apache-2.0
// deft/core/crc32c.ipp: by the processor's instruction where it has one, else by Boost's tables.
#pragma once
#include <boost/crc.hpp>
#include <cstring>
#include <deft/core/crc32c.hpp>
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
[[gnu::target("sse4.2")]] std::uint32_t crc32c_by_instruction(std::string_view bytes,
                                                              std::uint32_t before) {
  std::uint64_t crc = ~before;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t eight;
    std::memcpy(&eight, at, 8);
    crc = _mm_crc32_u64(crc, eight);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (; left > 0; ++at, --left) rest = _mm_crc32_u8(rest, static_cast<unsigned char>(*at));
  return ~rest;
}
#endif

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
#ifdef __x86_64__
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return crc32c_by_instruction(bytes, before);
#endif
  return crc32c_by_tables(bytes, before);
}

}  // namespace deft
