// SPDX-License-Identifier: Apache-2.0
// What one program is by its flags, in processes.
#include "session/processes.hpp"
#include "session/sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::child_program;

namespace {
bool has(const std::vector<std::string>& lines, const std::string& text) {
  return std::ranges::any_of(lines, [&](const auto& l) { return l.find(text) != l.npos; });
}
}  // namespace

TEST_CASE("tasks of any job serve until the others are done") {
  child_program p("jobs", {});
  const auto lines = p.lines();
  INFO(join(lines, "\n"));
  CHECK(p.wait() == 0);
  CHECK(has(lines, "worker/0: 42, chief: 0"));
}

TEST_CASE("a task that returns early is not waited for") {
  child_program p("jobs", {"--early=true"});
  p.lines();
  const std::string said = p.complaints();
  INFO(said);
  CHECK(p.wait() == 1);
  CHECK(said.find("/job:stage/replica:0/task:1 has ended: it said that it was done") != said.npos);
}

TEST_CASE("a single process of the same binary trains alone") {
  child_program p("line_fit", {"--single", "--steps=100"});
  auto lines = p.lines();
  CHECK(p.wait() == 0);
  CHECK(has(lines, "w is 3.000"));
}

TEST_CASE("--help lists the flags, those of the program too, and the environment variables") {
  child_program p("line_fit", {"--help"});
  auto lines = p.lines();
  CHECK(p.wait() == 0);
  for (const char* name : {"--steps                        how many (50)", "--job_name", "--single",
                           "--help", "DEFT_LOG", "DEFT_SECRET"})
    CHECK(has(lines, name));
}
