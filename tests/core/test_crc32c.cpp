// SPDX-License-Identifier: Apache-2.0
#include <deft/core/crc32c.hpp>

#include <algorithm>
#include <string>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

TEST_CASE("checksums are those of RFC 3720, appendix B.4") {
  CHECK(crc32c({}) == 0);
  CHECK(crc32c("123456789") == 0xe3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
  std::string up(32, '\0'), down(32, '\0');
  for (int i = 0; i < 32; ++i) {
    up[static_cast<std::size_t>(i)] = static_cast<char>(i);
    down[static_cast<std::size_t>(i)] = static_cast<char>(31 - i);
  }
  CHECK(crc32c(up) == 0x46dd794eu);
  CHECK(crc32c(down) == 0x113fdb5cu);
}

TEST_CASE("a checksum is continued at any place") {
  const std::string bytes = "the quick brown fox jumps over the lazy dog";
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut)
    CHECK(crc32c(bytes.substr(cut), crc32c(bytes.substr(0, cut))) == crc32c(bytes));
}

namespace {

std::string drawn(std::size_t n) {
  std::string bytes(n, '\0');
  std::uint32_t next = 1;
  for (auto& b : bytes) b = static_cast<char>((next = next * 1'664'525u + 1'013'904'223u) >> 24);
  return bytes;
}

}  // namespace

TEST_CASE("what the processor computes is what tables give, for every length and alignment") {
  const std::string bytes = drawn(2500);
  const std::string_view all = bytes;
  for (std::size_t n = 0; n < 2400; n += n < 1300 ? 1 : 37)
    for (const std::size_t at : {0u, 1u, 13u}) {
      CAPTURE(n);
      CAPTURE(at);
      const auto before = static_cast<std::uint32_t>(n * 0x9e3779b9u);
      CHECK(crc32c(all.substr(at, n), before) ==
            detail::crc32c_by_tables(all.substr(at, n), before));
    }
  CHECK(detail::crc32c_by_tables("123456789", 0) == 0xe3069283u);
  CHECK(detail::crc32c_by_tables("6789", detail::crc32c_by_tables("12345", 0)) == 0xe3069283u);
}

TEST_CASE("long runs of bytes have the checksum of their pieces") {
  const std::string bytes = drawn(50'000);
  for (const std::size_t n : {12'287u, 12'288u, 12'289u, 24'581u, 50'000u}) {
    std::uint32_t pieces = 0;
    for (std::size_t at = 0; at < n; at += 1000)
      pieces =
          crc32c(std::string_view(bytes).substr(at, std::min<std::size_t>(1000, n - at)), pieces);
    CHECK(crc32c(std::string_view(bytes).substr(0, n)) == pieces);
  }
}

TEST_CASE("checksums of two parts are joined to that of the whole") {
  const std::string bytes = drawn(5000);
  const std::string_view all = bytes;
  for (const std::size_t n : {0u, 1u, 7u, 8u, 4096u, 4999u, 5000u})
    CHECK(crc32c_joined(crc32c(all.substr(0, n)), crc32c(all.substr(n)), 5000 - n) == crc32c(all));
  const std::string zeros(1 << 20, '\0');
  CHECK(crc32c_joined(crc32c("a"), crc32c(zeros), zeros.size()) == crc32c("a" + zeros));
}
