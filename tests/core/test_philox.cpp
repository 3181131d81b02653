// SPDX-License-Identifier: Apache-2.0
// tests/core/test_philox.cpp: Philox agrees with Random123 and draws evenly.
#include <deft/core/philox.hpp>
// First, to check that the header is self-contained.
#include <doctest/doctest.h>

using namespace deft;
using namespace deft::ext;

TEST_CASE("Philox gives the known answers of Random123") {
  using counter = std::array<std::uint32_t, 4>;
  using key = std::array<std::uint32_t, 2>;
  struct row {
    counter c;
    key k;
    counter answer;
  };
  static constexpr row rows[] = {
      // Random123, tests/kat_vectors, philox4x32 with 10 rounds
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const row& r : rows) CHECK(philox(r.c, r.k) == r.answer);
  static_assert(philox(rows[0].c, rows[0].k) == rows[0].answer, "Philox is constexpr");
}

TEST_CASE("unit_float covers [0, 1) and never reaches 1") {
  CHECK(unit_float(0) == 0.f);
  CHECK(unit_float(0xffffffff) < 1.f);
  CHECK(unit_float(0x80000000) == 0.5f);
}

TEST_CASE("a stream gives Philox's words in order, which differ for every seed and stream") {
  philox_stream s(0x299f31d0a4093822u, 0x0370734413198a2eu);
  for (std::uint32_t block = 0; block < 3; ++block) {
    auto words = philox({block, 0, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0});
    for (auto w : words) CHECK(s.word() == w);
  }
  CHECK(philox_stream(1).word() != philox_stream(2).word());
  CHECK(philox_stream(1, 0).word() != philox_stream(1, 1).word());
}

TEST_CASE("below(n) draws all numbers about equally often") {
  philox_stream s(7);
  int counts[10] = {};
  for (int i = 0; i < 100'000; ++i) {
    auto v = s.below(10);
    REQUIRE(v < 10);
    ++counts[v];
  }
  for (int c : counts) CHECK(c == doctest::Approx(10'000).epsilon(0.05));
  CHECK(s.below(1) == 0);
  std::uint64_t huge = ~std::uint64_t{0};
  CHECK(s.below(huge) < huge);
}
