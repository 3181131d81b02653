// SPDX-License-Identifier: Apache-2.0
#include <deft/session/worker/ended_steps.hpp>

#include "testing.hpp"

using deft::ext::ended_steps;

TEST_CASE("steps end in any order, and all below a number at once") {
  ended_steps e;
  CHECK_FALSE(e.contains(0));
  e.insert(7);
  e.insert(5);
  CHECK(e.contains(5));
  CHECK_FALSE(e.contains(6));
  CHECK(e.contains(7));
  CHECK(e.raise(7));
  CHECK_FALSE(e.raise(7));
  CHECK_FALSE(e.raise(3));
  CHECK(e.contains(6));
  CHECK(e.contains(7));
  CHECK_FALSE(e.contains(8));
  e.insert(2);
  CHECK(e.contains(2));
}

TEST_CASE("a limited number of ended steps is remembered, the highest ones longest") {
  ended_steps e;
  for (std::uint64_t i = 0; i <= e.most; ++i) e.insert(10 + i);
  CHECK_FALSE(e.contains(10));
  CHECK(e.contains(11));
  CHECK(e.contains(10 + e.most));
}
