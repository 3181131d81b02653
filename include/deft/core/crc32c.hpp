// SPDX-License-Identifier: Apache-2.0
// deft/core/crc32c.hpp: the checksum of TFRecord files and checkpoints.
#pragma once
#include <cstdint>
#include <deft/core/config.hpp>
#include <string_view>

namespace deft::ext {

/// CRC-32C (Castagnoli's polynomial; RFC 3720, appendix B.4) of `bytes`, or of those before them,
/// whose checksum is `before`, and `bytes`.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

/// The checksum of bytes whose first part has the checksum `first`, and whose other part, of
/// `bytes` bytes, has `second`.
std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second, std::uint64_t bytes);

}  // namespace deft::ext

namespace deft::detail {
/// The same, on any processor.
std::uint32_t crc32c_by_tables(std::string_view bytes, std::uint32_t before);
}  // namespace deft::detail

namespace deft::ext {}  // namespace deft::ext
