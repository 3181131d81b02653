// SPDX-License-Identifier: Apache-2.0
#include <deft/core/printable.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

TEST_CASE("text from a peer is escaped where a terminal would not just show it") {
  struct {
    std::string_view text, shown;
  } const cases[] = {
      {"plain \"text\" \\ of 3 µs, größer, 漢字, 🙂",
       "plain \"text\" \\ of 3 µs, größer, 漢字, 🙂"},
      {"a\nb\r\tc", "a\\nb\\r\\tc"},
      {"\x1b[31mred\x7f\b", "\\x1b[31mred\\x7f\\x08"},
      {{"a\0b", 3}, "a\\x00b"},
      {"\u009b2J\u0085", "\\u009b2J\\u0085"},                         // C1 controls
      {"\u202egpj\u2066.exe\u2028", "\\u202egpj\\u2066.exe\\u2028"},  // direction, lines
      {"a\u200bb\ufeff\U000e0041", "a\\u200bb\\ufeff\\U000e0041"},    // invisible
      {"\xff\xc3(\xe2\x82", "\\xff\\xc3(\\xe2\\x82"},                 // not UTF-8
      {"\xc0\x8a\xe0\x80\x8a\xed\xa0\x80\xf5", "\\xc0\\x8a\\xe0\\x80\\x8a\\xed\\xa0\\x80\\xf5"},
  };
  for (const auto& c : cases) {
    CHECK(printable(c.text) == c.shown);
    CHECK(printable(c.shown) == c.shown);  // twice is as good as once
  }
}

TEST_CASE("long text from a peer is cut off, between characters") {
  CHECK(printable("12345", 5) == "12345");
  CHECK(printable("123456", 5) == "12345…");
  CHECK(printable("1234ü", 5) == "1234…");
  CHECK(printable("1234\n", 5) == "1234…");
  const std::string endless(1 << 20, 'x');
  CHECK(printable(endless) == std::string(4096, 'x') + "…");
  CHECK(printable(printable(endless)) == printable(endless));
}
