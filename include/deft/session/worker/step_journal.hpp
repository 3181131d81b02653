// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/step_journal.hpp: what became of a session's last steps on a task.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deft/session/wire/messages.hpp>
#include <deque>
#include <utility>

namespace deft {

/// Kept when the connection of a master is lost, who may ask for it by another.
class step_journal {
 public:
  static constexpr std::size_t most = 1'024;

  void note(std::uint64_t step, wire::fate f) {
    last_.emplace_back(step, f);
    if (last_.size() > most) last_.pop_front();
  }
  wire::fate of(std::uint64_t step) const {
    const auto at = std::find_if(last_.rbegin(), last_.rend(),
                                 [&](const auto& entry) { return entry.first == step; });
    return at == last_.rend() ? wire::fate::unknown : at->second;
  }
  bool empty() const { return last_.empty(); }

 private:
  std::deque<std::pair<std::uint64_t, wire::fate>> last_;
};

}  // namespace deft
