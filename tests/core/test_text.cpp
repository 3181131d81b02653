// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <deft/core/text.hpp>
#include <limits>
#include <vector>

#include "testing.hpp"

using namespace deft;

TEST_CASE("str joins text, numbers, booleans and types with to_string") {
  CHECK(str() == "");
  CHECK(str("a", 'b', std::string("c"), std::string_view("d")) == "abcd");
  CHECK(str(1, ' ', -2L, ' ', true, ' ', false) == "1 -2 true false");
  CHECK(str("at ", source_place{"m.cpp", 3}) == "at m.cpp:3");
}

TEST_CASE("numbers print in their shortest exact form") {
  CHECK(str(0.1f) == "0.1");
  CHECK(str(0.1) == "0.1");
  CHECK(str(1.f / 3.f) == "0.33333334");
  CHECK(str(2.f) == "2");
  CHECK(str(1e30f) == "1e+30");
  CHECK(str(-0.f) == "-0");
  CHECK(str(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(str(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
}

TEST_CASE("a uint8 is a number, not a character") {
  CHECK(str(std::uint8_t{65}) == "65");
  CHECK(str(std::int8_t{-1}) == "-1");
}

TEST_CASE("join puts the separator between elements, never after the last") {
  CHECK(join(std::vector<int>{}, ", ") == "");
  CHECK(join(std::vector<int>{4}, ", ") == "4");
  CHECK(join(std::vector<int>{1, 2, 3}, ", ") == "1, 2, 3");
  CHECK(join(std::vector<int>{1, 2}, " ", [](int v) { return str('<', v, '>'); }) == "<1> <2>");
}
