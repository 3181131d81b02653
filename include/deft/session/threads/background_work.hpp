// SPDX-License-Identifier: Apache-2.0
// deft/session/threads/background_work.hpp: runs tasks that may take long on a cache of threads.
#pragma once
#include <deft/core/config.hpp>
#include <functional>
#include <memory>
#include <utility>

namespace deft::ext {

/// Work on other threads for one owner, who can wait until all of it has ended. Thread-safe.
class background_work {
  struct count;

 public:
  /// Work that counts as under way until the token is destroyed, on any thread.
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
  /// A token for work that is not given to `run`, for which `wait` waits too.
  token begin();
  /// Runs `f` on another thread, soon, and destroys it there. `f` must not throw.
  /// Throws resource_exhausted if no thread is running and the system cannot start one.
  void run(std::function<void()> f);
  /// Waits until all work has ended, except the work that calls this.
  void wait() const;

 private:
  std::shared_ptr<count> count_;
};

}  // namespace deft::ext
