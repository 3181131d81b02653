// SPDX-License-Identifier: Apache-2.0
// deft/train/due_steps.hpp: what hooks do every so many global steps. Internal.
#pragma once
#include <cstdint>
#include <deft/core/config.hpp>

namespace deft::detail {

/// Whether the next run is one of those: the first one, and one whenever the global step has grown
/// by `every` since the last of them.
class due_steps {
 public:
  explicit due_steps(std::int64_t every) : every_(every) {}

  bool next() const { return first_ || seen_ + 1 - last_ >= every_; }
  /// The next run is the first again: after a recovery, which may have set the step back.
  void restart() { first_ = true; }
  /// A run has made the global step `step`; `done`: it was one of those.
  void ran(std::int64_t step, bool done) {
    seen_ = step;
    if (done) last_ = step, first_ = false;
  }

 private:
  std::int64_t every_;
  std::int64_t last_ = 0;  // the step of the last of those, if not `first_`
  std::int64_t seen_ = 0;
  bool first_ = true;
};

}  // namespace deft::detail
