// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deft/kernels/spec/long_sum.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

TEST_CASE("a long sum has every addend once, on both sides of each of its levels") {
  constexpr std::int64_t n = addends_together;
  for (const std::int64_t size : {n, 2 * n, n * n, 2 * n * n, n * n * n})
    for (const std::int64_t count : {size - 1, size, size + 1}) {
      CAPTURE(count);
      long_sum<std::int64_t> sum(0);
      for (int time = 0; time < 2; ++time) {
        CHECK(sum.empty());
        for (std::int64_t i = 1; i <= count; ++i) sum.add(i);
        CHECK(sum.total(count + 1) == (count + 1) * (count + 2) / 2);
        sum.clear();
      }
    }
}

TEST_CASE("a sum in leaves has every addend once, and its rounding error stays small") {
  constexpr std::int64_t n = addends_together;
  for (const std::int64_t leaf : {std::int64_t{1}, n})
    for (const std::int64_t leaves : {std::int64_t{1}, n, n * n, n * n + n})
      for (const std::int64_t count : {leaf * leaves - 1, leaf * leaves, leaf * leaves + 1}) {
        CAPTURE(count);
        CHECK(sum_in_leaves(count, leaf, std::int64_t{0},
                            [&](std::int64_t& sum, std::int64_t begin, std::int64_t end) {
                              CHECK(end - begin <= leaf);
                              for (std::int64_t i = begin; i < end; ++i) sum += i;
                            }) == count * (count - 1) / 2);
      }
  // In order, the error would be about 1e-3.
  constexpr std::int64_t many = 1 << 20;
  const float sum = sum_in_leaves(many, n, 0.0f, [](float& s, std::int64_t i, std::int64_t end) {
    for (; i < end; ++i) s += 0.1f;
  });
  CHECK(std::abs(sum / static_cast<float>(many) - 0.1f) < 1e-6f);
}
