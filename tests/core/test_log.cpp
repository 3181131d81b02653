// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <deft/core/limited_log.hpp>
#include <filesystem>
#include <vector>

#include "testing.hpp"

using namespace deft;

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

TEST_CASE("the text of a dropped line is never built") {
  capture c;
  int prints = 0;
  logging::set_level(logging::level::warning);
  logging::info(counted{&prints});
  CHECK(prints == 0);
  logging::warning(counted{&prints});
  CHECK(prints == 1);
}

TEST_CASE("a limited line comes once, and later says how many were left out") {
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

TEST_CASE("an unknown DEFT_LOG is reported in one line, with the levels that there are") {
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto logged = [&](const std::string& value) {
    // The level is read once in a process, so that this takes another one.
    const auto command = str("DEFT_LOG='", value, "' '", self,
                             "' --test-case='lines below the level are dropped' 2>&1 >/dev/null");
    std::string text;
    FILE* const from = popen(command.c_str(), "r");
    REQUIRE(from);
    for (int c; (c = std::fgetc(from)) != EOF;) text += static_cast<char>(c);
    CHECK(pclose(from) == 0);
    return text;
  };
  const std::string line = logged("loud");
  CHECK(line.ends_with(
      " W DEFT_LOG=loud is not a level: expected one of debug, info, warning, error, off; using "
      "warning\n"));
  CHECK(std::ranges::count(line, '\n') == 1);
  for (const char* known : {"", "debug", "warning", "off"}) CHECK(logged(known) == "");
}
