// SPDX-License-Identifier: Apache-2.0
// deft/core/printable.ipp: decoding UTF-8, and which characters are escaped.
#pragma once
#include <algorithm>
#include <cstdio>
#include <deft/core/printable.hpp>
#include <utility>

namespace deft::ext {
namespace {

/// A character of UTF-8 (RFC 3629): its number, and how many bytes it has; 0 if the text does not
/// begin with one.
std::pair<char32_t, std::size_t> first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < n) return {0, 0};
  char32_t c = lead & (0x7fu >> n);
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0, 0};
    c = c << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (n == 3 && c < 0x800) || (n == 4 && c < 0x10000);
  if (overlong || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return {0, 0};
  return {c, n};
}
/// Whether a terminal shows the character, and where it stands.
bool is_shown(char32_t c) {
  const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool directs = c == 0x61c || (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
                       (c >= 0x2066 && c <= 0x2069);
  const bool invisible = c == 0xad || (c >= 0x200b && c <= 0x200d) ||
                         (c >= 0x2060 && c <= 0x2064) || c == 0xfeff ||
                         (c >= 0xe0000 && c <= 0xe0fff);
  return !control && !directs && !invisible;
}
std::string escaped(char32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  char text[16];
  std::snprintf(text, sizeof text,
                c < 0x80      ? "\\x%02x"
                : c < 0x10000 ? "\\u%04x"
                              : "\\U%08x",
                static_cast<unsigned>(c));
  return text;
}

}  // namespace

std::string printable(std::string_view text, std::size_t most) {
  std::string all;
  while (!text.empty()) {
    const auto [c, bytes] = first_character(text);
    std::string next;
    if (bytes == 0) {
      char byte[8];
      std::snprintf(byte, sizeof byte, "\\x%02x", static_cast<unsigned char>(text[0]));
      next = byte;
    } else {
      next = is_shown(c) ? std::string(text.substr(0, bytes)) : escaped(c);
    }
    if (all.size() + next.size() > most) return all + "…";
    all += next;
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return all;
}

std::string printable_lines(std::string_view text) {
  constexpr std::size_t most_of_line = 16 * 1024, most = 64 * 1024;
  std::string all;
  for (std::size_t begin = 0; begin <= text.size();) {
    if (all.size() > most) return all + "…";
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (begin) all += "\n    ";
    all += printable(text.substr(begin, end - begin), most_of_line);
    begin = end + 1;
  }
  return all;
}

}  // namespace deft::ext
