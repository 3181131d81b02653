// SPDX-License-Identifier: Apache-2.0
#include <deft/core/hash.hpp>
#include <set>
#include <string>

#include "testing.hpp"

using namespace deft;

TEST_CASE("hashes are the same on every platform") {
  // Worked out by hand-written Python from the published formulas.
  static_assert(hash_text("") == 0x169180786fa941d5u);
  static_assert(hash_text("relu(add(0,1))") != hash_text("relu(add(1,0))"));
  static_assert(hash_text("matmul") == 0x14f07cd6e75df656u);
  static_assert(mix(0, 0) == 0x850f9794d5108b4u);
  static_assert(mix(1, 2) == 0xede26bbdec1829b5u);
}

TEST_CASE("nearby inputs get distant hashes") {
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

TEST_CASE("texts that differ in a trailing zero byte hash apart") {
  CHECK(hash_text(std::string("a")) != hash_text(std::string("a\0", 2)));
}
