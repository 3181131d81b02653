// SPDX-License-Identifier: Apache-2.0
#include <deft/session/worker/step_journal.hpp>
#include <optional>

#include "testing.hpp"

using deft::step_fate;
using deft::ext::step_journal;

namespace {

/// The answer, if it came at once.
std::optional<step_fate> asked(step_journal& j, std::uint64_t step) {
  std::optional<step_fate> told;
  j.ask(step, [&](step_fate f) { told = f; });
  return told;
}

}  // namespace

TEST_CASE("a journal knows the last steps, and no older ones") {
  step_journal j;
  for (std::uint64_t i = 0; i <= step_journal::most; ++i) {
    CHECK(j.begin(10 + i));
    j.end(10 + i, i % 2 ? step_fate::applied : step_fate::in_part);
  }
  CHECK(asked(j, 10) == step_fate::unknown);
  CHECK(asked(j, 11) == step_fate::applied);
  CHECK(asked(j, 12) == step_fate::in_part);
  CHECK(asked(j, 10 + step_journal::most) == step_fate::in_part);
  CHECK_FALSE(j.begin(11));
}

TEST_CASE("who asks how a step ended hears of it when it has") {
  step_journal j;
  CHECK(j.begin(1));
  CHECK_FALSE(j.begin(1));
  std::vector<step_fate> told;
  for (int i = 0; i < 2; ++i) j.ask(1, [&](step_fate f) { told.push_back(f); });
  CHECK(told.empty());
  j.end(1, step_fate::applied);
  CHECK(told == std::vector{step_fate::applied, step_fate::applied});
  CHECK(asked(j, 1) == step_fate::applied);
}

TEST_CASE("a step that has not begun when it is asked for never does") {
  step_journal j;
  CHECK(asked(j, 3) == step_fate::unchanged);
  CHECK_FALSE(j.begin(3));
  CHECK(j.begin(2));
  CHECK(j.begin(4));
}
