// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/step_journal.hpp: how the last steps of a session ended on a task.
#pragma once
#include <cstddef>
#include <deft/session/options.hpp>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace deft::ext {

/// How the last steps of a session ended. Kept after the connection of the master is lost, which
/// may ask for it on another one. Thread-safe.
class step_journal {
 public:
  static constexpr std::size_t most = 1'024;
  using callback = std::function<void(step_fate)>;

  /// Returns false if the step has begun before, or must not.
  bool begin(std::uint64_t step);
  void end(std::uint64_t step, step_fate f);
  /// Calls `then` once the step has ended. One that has not begun never will.
  void ask(std::uint64_t step, callback then);

 private:
  struct open_step {
    std::uint64_t number;
    std::vector<callback> asked;
  };
  // With the lock held:
  std::vector<open_step>::iterator find(std::uint64_t step);
  step_fate of(std::uint64_t step) const;
  void note(std::uint64_t step, step_fate f);

  std::mutex guard_;
  std::deque<std::pair<std::uint64_t, step_fate>> last_;
  std::uint64_t highest_ = 0, forgotten_ = 0;  ///< the highest of all, and of those not in last_
  std::vector<open_step> under_way_;
};

}  // namespace deft::ext
