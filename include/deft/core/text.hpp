// SPDX-License-Identifier: Apache-2.0
// deft/core/text.hpp: joining values into a string, printing numbers, and UTF-8.
#pragma once
#include <charconv>
#include <cmath>
#include <concepts>
#include <deft/core/half.hpp>
#include <deft/core/printable.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace deft::ext {

/// What `v` is printed as: an integer below 2^24 as it is, else the float of the fewest digits that
/// rounds to `v`.
template <class T>
requires is_half_type<T>
float printed_value(T v) {
  if (const float f = v; f > -0x1p24f && f < 0x1p24f && f == std::trunc(f)) return f;
  for (int digits = 0; digits < std::numeric_limits<T>::max_digits10; ++digits) {
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, static_cast<float>(v),
                                   std::chars_format::scientific, digits);
    float read = 0;
    std::from_chars(text, end.ptr, read);
    if (T(read).bits() == v.bits()) return read;
  }
  return v;  // NaN
}

}  // namespace deft::ext

namespace deft::detail {

inline void append(std::string& s, std::string_view v) { s += v; }
inline void append(std::string& s, char c) { s += c; }
template <std::same_as<bool> B>
void append(std::string& s, B b) {
  s += b ? "true" : "false";
}
template <class T>
requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) void append(std::string& s, T v) {
  char buf[64];
  auto r = std::to_chars(buf, buf + sizeof buf, v);
  s.append(buf, r.ptr);
}
template <class T>
requires is_half_type<T>
void append(std::string& s, T v) { append(s, printed_value(v)); }
template <class T>
requires requires(const T& v) {
  to_string(v);
} &&(!std::is_arithmetic_v<T>)void append(std::string& s, const T& v) {
  s += to_string(v);
}

}  // namespace deft::detail

namespace deft::ext {

/// Joins its arguments: text as it is, numbers in their shortest exact form.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::string s;
  (detail::append(s, parts), ...);
  return s;
}

/// `items` joined by `separator`; `print` converts one to text.
template <class Range, class Print>
std::string join(const Range& items, std::string_view separator, Print print) {
  std::string s;
  bool first = true;
  for (const auto& item : items) {
    if (!first) s += separator;
    first = false;
    detail::append(s, print(item));
  }
  return s;
}
template <class Range>
std::string join(const Range& items, std::string_view separator) {
  return join(
      items, separator, [](const auto& v) -> const auto& { return v; });
}

/// Whether `text` is UTF-8 (RFC 3629), as JSON, protocol buffers and Graphviz require of names.
bool is_utf8(std::string_view text);
/// `text` as UTF-8: bytes that are not are written as "\xfc".
std::string as_utf8(std::string_view text);

/// Whether `text` is what `pattern` says: '*' is any text, also none, and '?' one byte.
bool matches(std::string_view pattern, std::string_view text);

/// The element of `known` closest to `text`, at most two edits away; `text` itself if it is one of
/// them, or if none is that close.
std::string closest(const std::string& text, const std::vector<std::string>& known);

}  // namespace deft::ext
