// SPDX-License-Identifier: Apache-2.0
#include <deft/core/num_text.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using num::text;

TEST_CASE("computing with text yields source text") {
  const text x("x"), y("y");
  struct {
    text got;
    const char* expected;
  } cases[] = {
      {x + y, "(x + y)"},
      {1 - x * y, "(T(1) - (x * y))"},
      {-x / 0.5, "((-x) / T(0.5))"},
      {x % 3, "(x % T(3))"},
      {x > y, "(y < x)"},
      {x != 0.1f, "(!(x == T(0.1)))"},
      {!(x < y) || (x >= 1e300 && x == y), "((!(x < y)) || ((T(1e+300) <= x) && (x == y)))"},
      {num::log1p(num::exp(num::minimum(x, 0))), "num::log1p(num::exp(num::minimum(x, T(0))))"},
      {num::select(x < y, x, 2), "num::select((x < y), x, T(2))"},
      {num::cast<std::int64_t>(x), "num::cast<long long>(x)"},
      {num::cast<std::uint8_t>(num::cast<bool>(x)), "num::cast<unsigned char>(num::cast<bool>(x))"},
  };
  for (const auto& c : cases) CHECK(c.got.s == c.expected);
}
