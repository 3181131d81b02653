// SPDX-License-Identifier: Apache-2.0
#include <deft/core/limited_log.hpp>
#include <vector>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

std::vector<std::string> lines;

// Collects the lines that are logged during its lifetime.
struct capture {
  logging::level before = logging::threshold();
  capture() {
    lines.clear();
    logging::set_sink([](logging::level l, const std::string& text) {
      lines.push_back(str(static_cast<int>(l), " ", text));
    });
  }
  ~capture() {
    logging::set_sink(nullptr);
    logging::set_level(before);
  }
};

struct counted {
  int* prints;
};
std::string to_string(const counted& c) { return str(++*c.prints); }

}  // namespace

TEST_CASE("lines below the level are dropped") {
  capture c;
  logging::set_level(logging::level::warning);
  logging::info("quiet");
  logging::warning("loud ", 1);
  CHECK(lines == std::vector<std::string>{"2 loud 1"});

  logging::set_level(logging::level::info);
  logging::info("heard");
  CHECK(lines.back() == "1 heard");

  logging::set_level(logging::level::off);
  logging::log(logging::level::error, "silent");
  CHECK(lines.size() == 2);
}

TEST_CASE("no text looks like an entry of its own, or controls the terminal") {
  capture c;
  logging::set_level(logging::level::warning);
  logging::warning("it refused: x\n04:00:00.000 E worker/0: forged \x1b[31m\r");
  CHECK(lines.back() == "2 it refused: x\n    04:00:00.000 E worker/0: forged \\x1b[31m\\r");
  logging::warning(std::string(1 << 20, 'x'));
  CHECK(lines.back().size() < 20'000);
}

TEST_CASE("DEFT_LOG names a level, and an invalid value is reported") {
  capture c;
  CHECK(logging::level_of("debug") == logging::level::debug);
  CHECK(logging::level_of("off") == logging::level::off);
  CHECK(logging::level_of(nullptr) == logging::level::warning);
  CHECK(logging::level_of("") == logging::level::warning);
  CHECK(lines.empty());
  CHECK(logging::level_of("verbose") == logging::level::warning);
  CHECK(lines == std::vector<std::string>{
                     "2 DEFT_LOG=verbose is not a log level: expected debug, info, warning, error "
                     "or off; using warning"});
}

TEST_CASE("a line that is dropped is never formatted") {
  capture c;
  int prints = 0;
  logging::set_level(logging::level::warning);
  logging::info(counted{&prints});
  CHECK(prints == 0);
  logging::warning(counted{&prints});
  CHECK(prints == 1);
}

TEST_CASE("repeated lines of one kind are limited, and the next one says how many were dropped") {
  capture c;
  logging::set_level(logging::level::warning);
  logging::limited refusals(100), others;
  for (int i = 0; i < 1000; ++i) refusals.log(logging::level::warning, "refused ", i);
  others.log(logging::level::warning, "another kind");
  refusals.log(logging::level::info, "not shown, and not counted");
  REQUIRE(lines.size() >= 2);
  CHECK(lines[0] == "2 refused 0");
  CHECK(lines.back() == "2 another kind");
  // Wait until the next line is allowed.
  lines.clear();
  long long tried = 999;
  for (; lines.empty(); ++tried) refusals.log(logging::level::warning, "again");
  CHECK(lines[0] == str("2 again (and ", tried - 1, " more)"));
}
