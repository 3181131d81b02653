// SPDX-License-Identifier: Apache-2.0
#include <deft/train/due_steps.hpp>
// its own header comes first, to check that it is self-contained
#include <doctest/doctest.h>
#include <vector>

TEST_CASE(
    "the first run is due, then one whenever the step has grown enough, and after a restart") {
  deft::detail::due_steps due(3);
  std::vector<std::int64_t> done;
  const auto run = [&](std::int64_t step) {
    const bool now = due.next();
    if (now) done.push_back(step);
    due.ran(step, now);
  };
  for (std::int64_t step : {10, 11, 12, 13, 13, 20, 21, 25}) run(step);
  CHECK(done == std::vector<std::int64_t>{10, 13, 21});
  due.restart();  // the step is set back
  for (std::int64_t step : {1, 2, 3, 4}) run(step);
  CHECK(done == std::vector<std::int64_t>{10, 13, 21, 1, 4});
}
