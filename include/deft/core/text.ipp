// SPDX-License-Identifier: Apache-2.0
// deft/core/text.ipp: errors, places, shapes and log lines as text.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deft/core/dims.hpp>
#include <deft/core/duration.hpp>
#include <deft/core/error.hpp>
#include <deft/core/limited_log.hpp>
#include <deft/core/printable.ipp>
#include <utility>

namespace deft {

namespace ext {

std::string to_string(const source_location& w) {
  if (!w.known()) return {};
  std::string_view file = w.file;
  return str(file.substr(file.find_last_of('/') + 1), ":", w.line);
}

std::string where_of(const source_location& w) { return str(w.approximate ? "near " : "at ", w); }

}  // namespace ext

std::string_view to_string(errc code) {
  switch (code) {
    case errc::cancelled:
      return "cancelled";
    case errc::unknown:
      return "unknown";
    case errc::invalid_argument:
      return "invalid_argument";
    case errc::deadline_exceeded:
      return "deadline_exceeded";
    case errc::not_found:
      return "not_found";
    case errc::already_exists:
      return "already_exists";
    case errc::permission_denied:
      return "permission_denied";
    case errc::resource_exhausted:
      return "resource_exhausted";
    case errc::failed_precondition:
      return "failed_precondition";
    case errc::aborted:
      return "aborted";
    case errc::out_of_range:
      return "out_of_range";
    case errc::unimplemented:
      return "unimplemented";
    case errc::internal:
      return "internal";
    case errc::unavailable:
      return "unavailable";
    case errc::data_loss:
      return "data_loss";
    case errc::unauthenticated:
      return "unauthenticated";
  }
  return "unknown";
}

namespace detail {
inline std::string sentence(const std::string& message, const std::string& node,
                            const source_location& w, const std::string& device) {
  std::string s = message;
  if (!node.empty()) s += str(", node \"", node, "\"");
  if (w.known()) s += " " + where_of(w);
  if (!device.empty()) s += str(" on ", device);
  return s;
}
}  // namespace detail

error::error(errc code, std::string message, std::string node, ext::owned_location location,
             std::string device)
    : error(code, ext::error_reason::none, std::move(message), std::move(node), std::move(location),
            std::move(device)) {}
error::error(errc code, ext::error_reason reason, std::string message, std::string node,
             ext::owned_location location, std::string device)
    : std::runtime_error(detail::sentence(message, node, location, device)),
      code_(code),
      reason_(reason),
      what_(std::runtime_error::what()),
      message_(std::move(message)),
      node_(std::move(node)),
      device_(std::move(device)),
      location_(std::move(location)) {}

error error::with_message(std::string message) const {
  return error(code_, reason_, std::move(message), node_, location_, device_);
}
error error::with_node(std::string node, ext::owned_location location, std::string device) const {
  return error(code_, reason_, message_, std::move(node), std::move(location), std::move(device));
}

namespace {
/// Letters to insert, remove or replace. (Levenshtein, row by row.)
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}
}  // namespace

namespace ext {

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, after_star = pattern.npos, star_ends = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      star_ends = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (after_star != pattern.npos) {
      p = after_star;
      t = ++star_ends;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

std::string closest(const std::string& text, const std::vector<std::string>& known) {
  std::string found = text;
  std::size_t fewest = 3;
  for (const auto& k : known) {
    if (k == text) return text;
    const std::size_t n = edits(text, k);
    if (n < std::min(fewest, text.size())) fewest = n, found = k;
  }
  return found;
}

namespace {
/// How many bytes the first character has; 0 if it is not one of UTF-8.
std::size_t character_bytes(std::string_view text) { return first_character(text).second; }
}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}
std::string as_utf8(std::string_view text) {
  std::string s;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    s += bytes ? std::string(text.substr(0, bytes)) : printable(text.substr(0, 1));
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return s;
}

}  // namespace ext

std::string to_string(const dims& d) {
  return "(" +
         ext::join(d, ",",
                   [](std::int64_t e) { return e == dyn ? std::string("?") : ext::str(e); }) +
         ")";
}

namespace ext {

std::string list_text(const dims& d) { return "(" + join(d, ",") + ")"; }

std::string duration_text(std::chrono::nanoseconds d) {
  const auto ms = std::chrono::round<std::chrono::milliseconds>(d).count();
  if (ms < 1'000) return str(ms, " ms");
  const auto tenths = (ms + 50) / 100;
  return tenths % 10 ? str(tenths / 10, ".", tenths % 10, " s") : str(tenths / 10, " s");
}

}  // namespace ext

namespace logging {
namespace {

std::atomic<int> chosen_level{-1};
std::atomic<sink> chosen_sink{nullptr};

}  // namespace

level level_of(const char* text) {
  if (!text || !*text) return level::warning;
  constexpr std::string_view names[] = {"debug", "info", "warning", "error", "off"};
  const auto at = std::ranges::find(names, std::string_view(text));
  if (at != std::end(names)) return static_cast<level>(at - std::begin(names));
  write(level::warning, str("DEFT_LOG=", text,
                            " is not a log level: expected debug, info, warning, "
                            "error or off; using warning"));
  return level::warning;
}

level threshold() {
  int l = chosen_level.load(std::memory_order_relaxed);
  if (l < 0) chosen_level = l = static_cast<int>(level_of(std::getenv("DEFT_LOG")));
  return static_cast<level>(l);
}

void set_level(level l) { chosen_level = static_cast<int>(l); }
void set_sink(sink s) { chosen_sink = s; }

void write(level l, const std::string& text) {
  const std::string entry = printable_lines(text);
  if (sink s = chosen_sink) return s(l, entry);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  char head[32];
  std::snprintf(head, sizeof head, "%02d:%02d:%02d.%03ld %c ", parts.tm_hour, parts.tm_min,
                parts.tm_sec, now.tv_nsec / 1000000, "DIWE-"[static_cast<int>(l)]);
  static const char* const name = std::getenv("DEFT_LOG_NAME");
  const std::string line = name ? str(head, name, ": ", entry, "\n") : str(head, entry, "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

long long limited::admit() {
  const long long now = std::chrono::steady_clock::now().time_since_epoch().count();
  long long next = next_.load(std::memory_order_relaxed);
  if (now < next || !next_.compare_exchange_strong(next, now + interval_)) {
    ++left_out_;
    return -1;
  }
  return left_out_.exchange(0);
}

}  // namespace logging

}  // namespace deft
