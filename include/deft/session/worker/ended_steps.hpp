// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/ended_steps.hpp: which steps of a session are over on a task.
#pragma once
#include <cstdint>
#include <set>

namespace deft {

/// What comes for these is dropped. Their numbers rise; the master says below which all have ended.
class ended_steps {
 public:
  /// Of those that ended while a lower one had not.
  static constexpr std::size_t most = 65'536;

  bool contains(std::uint64_t step) const { return step < below_ || some_.contains(step); }
  void insert(std::uint64_t step) {
    if (step < below_) return;
    some_.insert(step);
    if (some_.size() > most) some_.erase(some_.begin());
  }
  /// False if that was known.
  bool raise(std::uint64_t below) {
    if (below <= below_) return false;
    below_ = below;
    some_.erase(some_.begin(), some_.lower_bound(below));
    return true;
  }

 private:
  std::uint64_t below_ = 0;
  std::set<std::uint64_t> some_;
};

}  // namespace deft
