// SPDX-License-Identifier: Apache-2.0
#include <deft/train/replicas/step_barrier.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

const step_barrier::participant a{"/task:0", 7}, b{"/task:1", 5}, c{"/task:1", 4};

}  // namespace

TEST_CASE("a round counts so many participants, each once, in the order of their names") {
  step_barrier rounds;
  CHECK_FALSE(rounds.has(1));
  CHECK(rounds.arrive(b, 2).counts);
  CHECK(rounds.arrive(b, 2).counts);
  CHECK_FALSE(rounds.has(2));
  CHECK_FALSE(rounds.late().counts);
  CHECK(rounds.arrive(c, 2).counts);
  CHECK(rounds.has(2));
  CHECK_FALSE(rounds.arrive(a, 2).counts);
  CHECK(rounds.arrived() == std::vector{c, b});
  rounds.withdraw(a);
  rounds.withdraw(c);
  CHECK_FALSE(rounds.has(2));
  CHECK(rounds.arrive(a, 2).counts);
  CHECK(rounds.arrived() == std::vector{a, b});
}

TEST_CASE("in the next round nobody has arrived, and what began before is stale") {
  step_barrier rounds;
  const std::int64_t first = rounds.round();
  const step_barrier::arrival counted = rounds.arrive(a, 1), late = rounds.late();
  CHECK_FALSE(rounds.is_over(counted));
  CHECK_FALSE(rounds.is_stale(first));
  rounds.begin_next();
  CHECK(rounds.round() == first + 1);
  CHECK(rounds.is_over(counted));
  CHECK(rounds.is_over(late));
  CHECK(rounds.is_stale(first));
  CHECK_FALSE(rounds.is_stale(rounds.round()));
  CHECK(rounds.arrived().empty());
  CHECK(rounds.arrive(b, 1).counts);
}
