// SPDX-License-Identifier: Apache-2.0
// deft/session/threads/background_work.hpp: what may take long, done on threads that are kept for a
// while.
#pragma once
#include <functional>
#include <memory>
#include <utility>

namespace deft {

/// What is done on other threads for one owner, who can wait for the end of it. Thread-safe.
class background_work {
  struct count;

 public:
  /// Something that is under way until this is destroyed, on whatever thread.
  class token {
   public:
    token() = default;
    token(token&&) noexcept = default;
    token& operator=(token&& o) noexcept;
    ~token();

   private:
    friend class background_work;
    explicit token(std::shared_ptr<count> c) : count_(std::move(c)) {}
    std::shared_ptr<count> count_;
  };

  background_work();
  /// What `wait` waits for, besides what `run` is given.
  token begin();
  /// Runs `f` on another thread, soon, and destroys it there. `f` must not throw.
  /// Throws resource_exhausted if there is no thread left.
  void run(std::function<void()> f);
  /// Waits until all that was begun has ended, but for the work that calls this.
  void wait() const;

 private:
  std::shared_ptr<count> count_;
};

}  // namespace deft
