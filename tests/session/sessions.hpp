// SPDX-License-Identifier: Apache-2.0
// tests/session/sessions.hpp: helpers for tests of sessions and clusters.
#pragma once
#include <deft/deft.hpp>
#include <mutex>
#include <string>
#include <vector>

#include "devices.hpp"
#include "op/modeling.hpp"

namespace testing {
using namespace std::chrono_literals;

/// Collects the lines that are logged while it lives, instead of printing them.
class log_lines {
 public:
  /// Lines of level `least` and above.
  explicit log_lines(deft::logging::level least = deft::logging::threshold()) {
    deft::logging::set_level(least);
    all().clear();
    deft::logging::set_sink([](deft::logging::level, const std::string& line) {
      std::lock_guard lock(guard());
      all().push_back(line);
    });
  }
  ~log_lines() {
    deft::logging::set_sink(nullptr);
    deft::logging::set_level(before_);
  }
  std::vector<std::string> take() {
    std::lock_guard lock(guard());
    return std::exchange(all(), {});
  }

 private:
  static std::mutex& guard() {
    static std::mutex m;
    return m;
  }
  static std::vector<std::string>& all() {
    static std::vector<std::string> lines;
    return lines;
  }

  deft::logging::level before_ = deft::logging::threshold();
};

/// The error that `f` throws; code 0 if it returns.
struct outcome {
  deft::errc code{};
  std::string message, node, device;
  unsigned line = 0;
  deft::ext::error_reason reason{};

  bool says(const std::string& text) const { return message.find(text) != message.npos; }
};
inline std::string to_string(const outcome& o) {
  return o.message.empty() ? "no error" : deft::ext::str(o.code, ": ", o.message);
}
template <class F>
outcome outcome_of(F&& f) {
  try {
    f();
  } catch (const deft::error& e) {
    return {e.code(), e.what(), e.node(), e.device(), e.where().line, e.reason()};
  }
  return {};
}

/// The credentials of a task or a connection.
inline bool is_loss(deft::errc c) {
  return c == deft::errc::unavailable || c == deft::errc::aborted;
}

}  // namespace testing
