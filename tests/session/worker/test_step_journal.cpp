// SPDX-License-Identifier: Apache-2.0
#include <deft/session/worker/step_journal.hpp>

#include "testing.hpp"

using deft::step_journal;
using deft::wire::fate;

TEST_CASE("a journal knows the last steps, and no older ones") {
  step_journal j;
  CHECK(j.empty());
  CHECK(j.of(1) == fate::unknown);
  for (std::uint64_t i = 0; i <= step_journal::most; ++i)
    j.note(10 + i, i % 2 ? fate::applied : fate::in_part);
  CHECK_FALSE(j.empty());
  CHECK(j.of(10) == fate::unknown);
  CHECK(j.of(11) == fate::applied);
  CHECK(j.of(12) == fate::in_part);
  CHECK(j.of(10 + step_journal::most) == fate::in_part);
}
