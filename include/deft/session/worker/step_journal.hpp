// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/step_journal.hpp: how the last steps of a session ended on a task.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deft/session/wire/messages.hpp>
#include <deque>
#include <utility>

namespace deft {

/// How the last steps of a session ended. Kept after the connection of the master is lost, which
/// may ask for it on another one.
class step_journal {
 public:
  static constexpr std::size_t most = 1'024;

  void note(std::uint64_t step, wire::fate f) {
    last_.emplace_back(step, f);
    if (last_.size() > most) last_.pop_front();
    highest_ = std::max(highest_, step);
  }
  wire::fate of(std::uint64_t step) const {
    if (step > highest_) return wire::fate::unknown;  // a new step, the usual case
    const auto at = std::find_if(last_.rbegin(), last_.rend(),
                                 [&](const auto& entry) { return entry.first == step; });
    return at == last_.rend() ? wire::fate::unknown : at->second;
  }
  bool empty() const { return last_.empty(); }

 private:
  std::deque<std::pair<std::uint64_t, wire::fate>> last_;
  std::uint64_t highest_ = 0;
};

}  // namespace deft
