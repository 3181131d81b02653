// SPDX-License-Identifier: Apache-2.0
// deft/session/worker/ended_steps.hpp: the steps of a session that have ended on a task.
#pragma once
#include <cstdint>
#include <deft/core/config.hpp>
#include <set>

namespace deft::ext {

/// Messages for steps that have ended are dropped. Step numbers rise, and the master says below
/// which number all steps have ended.
class ended_steps {
 public:
  /// The most steps that are remembered above that number.
  static constexpr std::size_t most = 65'536;

  bool contains(std::uint64_t step) const { return step < below_ || some_.contains(step); }
  void insert(std::uint64_t step) {
    if (step < below_) return;
    some_.insert(step);
    if (some_.size() > most) some_.erase(some_.begin());
  }
  /// All steps below `below` have ended. Returns false if that was known.
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

}  // namespace deft::ext
