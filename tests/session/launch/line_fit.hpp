// SPDX-License-Identifier: Apache-2.0
// tests/session/launch/line_fit.hpp: what the processes of programs/line_fit print, and their ends.
#pragma once
#include <signal.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "session/processes.hpp"

namespace testing {

inline bool has(const std::vector<std::string>& lines, const std::string& text) {
  return std::ranges::any_of(lines, [&](const auto& l) { return l.find(text) != l.npos; });
}

/// The numbers in lines "…process N trains".
inline std::vector<int> pids_of(child_program& p, int wanted) {
  std::vector<int> pids;
  while (static_cast<int>(pids.size()) < wanted) {
    std::string l = p.line();
    if (l.empty()) break;
    auto at = l.find("process ");
    if (at != l.npos) pids.push_back(std::stoi(l.substr(at + 8)));
  }
  return pids;
}

/// Waits until a process that is not a child of ours has ended.
inline void wait_until_gone(int pid) {
  while (::kill(pid, 0) == 0) std::this_thread::yield();
}

}  // namespace testing
