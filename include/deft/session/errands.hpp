// SPDX-License-Identifier: Apache-2.0
// deft/session/errands.hpp: what may take long, done on threads that are kept for a while.
#pragma once
#include <functional>
#include <memory>

namespace deft {

/// What is done on other threads for one owner, who can wait for the end of it. Thread-safe.
class errands {
 public:
  errands();
  /// Runs `f` on another thread, soon, and destroys it there. `f` must not throw.
  /// Throws resource_exhausted if there is no thread left.
  void run(std::function<void()> f);
  /// Waits until all that was begun has ended, but for the errand that calls.
  void wait() const;

 private:
  struct count;
  std::shared_ptr<count> count_;
};

}  // namespace deft
