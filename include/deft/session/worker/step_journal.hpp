// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/step_journal.hpp: how the last steps of a session ended on a task.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deft/session/options.hpp>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace deft {

/// How the last steps of a session ended. Kept after the connection of the master is lost, which
/// may ask for it on another one. Thread-safe.
class step_journal {
 public:
  static constexpr std::size_t most = 1'024;
  using callback = std::function<void(step_fate)>;

  /// Returns false if the step has begun before, or must not.
  bool begin(std::uint64_t step) {
    std::lock_guard lock(guard_);
    if (find(step) != under_way_.end() || of(step) != step_fate::unknown) return false;
    under_way_.push_back({step, {}});
    return true;
  }
  void end(std::uint64_t step, step_fate f) {
    std::vector<callback> asked;
    {
      std::lock_guard lock(guard_);
      if (const auto at = find(step); at != under_way_.end()) {
        asked = std::move(at->asked);
        *at = std::move(under_way_.back());
        under_way_.pop_back();
      }
      note(step, f);
    }
    for (const auto& then : asked) then(f);
  }
  /// Calls `then` once the step has ended. One that has not begun never will.
  void ask(std::uint64_t step, callback then) {
    step_fate known{};
    {
      std::lock_guard lock(guard_);
      if (const auto at = find(step); at != under_way_.end())
        return at->asked.push_back(std::move(then));
      known = of(step);
      if (known == step_fate::unknown && step > forgotten_)
        note(step, known = step_fate::unchanged);
    }
    then(known);
  }

 private:
  struct open_step {
    std::uint64_t number;
    std::vector<callback> asked;
  };

  std::vector<open_step>::iterator find(std::uint64_t step) {
    return std::ranges::find(under_way_, step, &open_step::number);
  }
  step_fate of(std::uint64_t step) const {
    if (step > highest_) return step_fate::unknown;  // a new step, the usual case
    const auto at = std::find_if(last_.rbegin(), last_.rend(),
                                 [&](const auto& entry) { return entry.first == step; });
    return at == last_.rend() ? step_fate::unknown : at->second;
  }
  void note(std::uint64_t step, step_fate f) {
    last_.emplace_back(step, f);
    highest_ = std::max(highest_, step);
    if (last_.size() <= most) return;
    forgotten_ = std::max(forgotten_, last_.front().first);
    last_.pop_front();
  }

  std::mutex guard_;
  std::deque<std::pair<std::uint64_t, step_fate>> last_;
  std::uint64_t highest_ = 0, forgotten_ = 0;  ///< the highest of all, and of those not in last_
  std::vector<open_step> under_way_;
};

}  // namespace deft
