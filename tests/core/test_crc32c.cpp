// SPDX-License-Identifier: Apache-2.0
#include <deft/core/crc32c.hpp>

#include <string>

#include "testing.hpp"

using namespace deft;

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
