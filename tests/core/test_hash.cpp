// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deft/core/hash.hpp>
#include <set>
#include <string>
#include <vector>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

TEST_CASE("hashes are the same on every platform") {
  // Computed in Python from the published formulas.
  static_assert(hash_text("") == 0x169180786fa941d5u);
  static_assert(hash_text("relu(add(0,1))") != hash_text("relu(add(1,0))"));
  static_assert(hash_text("matmul") == 0x14f07cd6e75df656u);
  static_assert(mix(0, 0) == 0xe220a8397b1dcdafu);
  static_assert(mix(1, 2) == 0xbfc846100bfc1e42u);
}

TEST_CASE("mix is one to one in each argument") {
  for (std::uint64_t v : {0xe7037ed1a0b428dbu, 0x9e3779b97f4a7c15u, 0ul, 1ul, ~0ul, 1ul << 63}) {
    std::set<std::uint64_t> by_seed, by_value;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      by_seed.insert(mix(i, v));
      by_value.insert(mix(v, i));
    }
    CHECK(by_seed.size() == 1000);
    CHECK(by_value.size() == 1000);
  }
}

TEST_CASE("bytes hash by content and length, not by address") {
  std::vector<unsigned char> bytes(200);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 37);
  std::set<std::uint64_t> seen;
  for (std::size_t n = 0; n <= bytes.size(); ++n) {
    const std::uint64_t h = hash_bytes(bytes.data(), n);
    std::vector<unsigned char> moved(n + 3);
    std::copy_n(bytes.data(), n, moved.data() + 3);
    CHECK(hash_bytes(moved.data() + 3, n) == h);
    seen.insert(h);
  }
  CHECK(seen.size() == bytes.size() + 1);
  seen.clear();
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= static_cast<unsigned char>(1 << bit);
      seen.insert(hash_bytes(bytes.data(), bytes.size()));
      bytes[i] ^= static_cast<unsigned char>(1 << bit);
    }
  CHECK(seen.size() == 8 * bytes.size());
  const std::vector<unsigned char> zeros(100);
  for (std::size_t n = 0; n <= 100; ++n) seen.insert(hash_bytes(zeros.data(), n));
  CHECK(seen.size() == 8 * bytes.size() + 101);
}

TEST_CASE("similar inputs have unrelated hashes") {
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i)
    for (std::uint64_t j = 0; j < 10; ++j) seen.insert(mix(i, j));
  CHECK(seen.size() == 10'000);

  int flipped = 0;
  for (int bit = 0; bit < 64; ++bit)
    flipped += __builtin_popcountll(mix(7, 42) ^ mix(7, 42u ^ (std::uint64_t{1} << bit)));
  CHECK(flipped > 64 * 24);
  CHECK(flipped < 64 * 40);
}

TEST_CASE("texts that differ in a trailing zero byte have different hashes") {
  CHECK(hash_text(std::string("a")) != hash_text(std::string("a\0", 2)));
}
