// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/spec/offset_allocator.hpp>
#include <random>
#include <testing.hpp>
#include <vector>

using namespace deft::ext;

TEST_CASE("values that live at the same time have bytes of their own") {
  struct value {
    std::size_t at, bytes;
  };
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    offset_allocator<> all;
    std::vector<value> live;
    std::size_t most = 0;
    for (int i = 0; i < 300; ++i) {
      if (!live.empty() && random() % 2) {
        const std::size_t n = random() % live.size();
        all.give(live[n].at, live[n].bytes);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(n));
        continue;
      }
      const std::size_t bytes = random() % 2'000, at = all.take(bytes);
      CHECK(at % 64 == 0);
      for (const value& v : live)
        CHECK((at + all.aligned(bytes) <= v.at || v.at + all.aligned(v.bytes) <= at));
      live.push_back({at, bytes});
      most = std::max(most, at + all.aligned(bytes));
    }
    CHECK(all.size() == most);
  }
}

TEST_CASE("the room of dead values is used again") {
  offset_allocator<256> all;
  const std::size_t a = all.take(1), b = all.take(256), c = all.take(257);
  CHECK(a == 0);
  CHECK(b == 256);
  CHECK(c == 512);
  CHECK(all.size() == 1'024);
  // Neighbours become one hole, the best fit is taken, and the hole at the end grows.
  all.give(a, 1);
  all.give(b, 256);
  CHECK(all.take(512) == 0);
  all.give(c, 257);
  CHECK(all.take(2'000) == 512);
  CHECK(all.size() == 512 + 2'048);
}
