// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <deft/core/text.hpp>
#include <limits>
#include <vector>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

TEST_CASE("str joins text, numbers, booleans and types with to_string") {
  CHECK(str() == "");
  CHECK(str("a", 'b', std::string("c"), std::string_view("d")) == "abcd");
  CHECK(str(1, ' ', -2L, ' ', true, ' ', false) == "1 -2 true false");
  CHECK(str("at ", source_location{"m.cpp", 3}) == "at m.cpp:3");
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

TEST_CASE("bytes are UTF-8 by RFC 3629, and the others are escaped") {
  const char* const valid[] = {"",         "plain\n",          "größe",           "\u0800",
                               "\uffff",   "\U00010000",       "\U0010ffff",      "\x7f",
                               "\xc2\x80", "\xed\x9f\xbf日本", "\xee\x80\x80 end"};
  for (const std::string text : valid) {
    CAPTURE(text);
    CHECK(is_utf8(text));
    CHECK(as_utf8(text) == text);
  }
  CHECK(is_utf8(std::string_view("\0", 1)));
  const std::pair<std::string, std::string> invalid[] = {
      {"f\xfcr", "f\\xfcr"},                         // Latin 1
      {"\xc3", "\\xc3"},                             // cut off
      {"\xe2\x82", "\\xe2\\x82"},                    //
      {"\xf0\x9f\x98", "\\xf0\\x9f\\x98"},           //
      {"a\x80z", "a\\x80z"},                         // without a beginning
      {"\xc0\x80", "\\xc0\\x80"},                    // longer than needed
      {"\xc1\xbf", "\\xc1\\xbf"},                    //
      {"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"},           //
      {"\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf"},  //
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // half of a pair
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // above U+10FFFF
      {"\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80"},
      {"\xff\xc3\xbc", "\\xff\u00fc"},
  };
  for (const auto& [text, escaped] : invalid) {
    CHECK_FALSE(is_utf8(text));
    CHECK(as_utf8(text) == escaped);
  }
}

TEST_CASE("patterns match whole texts") {
  const struct {
    const char *pattern, *text;
    bool matched;
  } cases[] = {{"", "", true},         {"*", "", true},       {"*", "abc", true},
               {"a*c", "abc", true},   {"a*c", "ac", true},   {"a?c", "abc", true},
               {"*b*", "abc", true},   {"*ab", "aaab", true}, {"a*b*c", "aXbXbXc", true},
               {"***", "x", true},     {"a*", "a", true},     {"", "a", false},
               {"a", "", false},       {"a", "ab", false},    {"?", "", false},
               {"a*c", "abcd", false}, {"*ab", "abb", false}, {"a*b*c", "acb", false}};
  for (const auto& c : cases) {
    CAPTURE(c.pattern);
    CHECK(matches(c.pattern, c.text) == c.matched);
  }
  CHECK_FALSE(matches("*a*a*a*a*a*a*a*b", std::string(2000, 'a')));  // and soon
}
