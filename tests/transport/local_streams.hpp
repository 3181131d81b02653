// SPDX-License-Identifier: Apache-2.0
// Helpers for tests of local sockets and their shared memory.
#pragma once
#include <deft/transport/local.hpp>

#include "wire.hpp"

namespace testing {

using stream_ptr = std::unique_ptr<detail::stream>;
inline constexpr std::size_t megabyte = std::size_t{1} << 20;
inline constexpr std::size_t memory_bytes = detail::slots * detail::slot_bytes;

inline std::byte byte_at(std::size_t i) { return static_cast<std::byte>(i * 31 + (i >> 9)); }
inline std::vector<std::byte> some_bytes(std::size_t n) {
  std::vector<std::byte> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = byte_at(i);
  return all;
}

inline std::ptrdiff_t write_some(detail::stream& s, const std::vector<std::byte>& bytes,
                                 std::size_t at = 0) {
  const iovec piece{const_cast<std::byte*>(bytes.data() + at), bytes.size() - at};
  return s.write(&piece, 1);
}

}  // namespace testing
