// SPDX-License-Identifier: Apache-2.0
// deft/session/threads/countdown.hpp: what follows when several things have happened.
#pragma once
#include <cstddef>
#include <deft/core/error.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace deft::ext {

/// Takes null, or why something failed. Must not throw.
using failure_callback = std::function<void(std::shared_ptr<const error>)>;

/// Calls a function once, when everything that was counted has ended, with the first failure, or
/// null. Thread-safe.
class countdown {
 public:
  /// `left` > 0: how many things are counted.
  countdown(std::size_t left, failure_callback then) : left_(left), then_(std::move(then)) {}

  /// One has ended; with `ends_all`, the others do not count any more.
  void end_one(std::shared_ptr<const error> failure, bool ends_all = false) {
    {
      std::lock_guard lock(guard_);
      if (left_ == 0) return;
      if (failure && !failure_) failure_ = std::move(failure);
      left_ = ends_all ? 0 : left_ - 1;
      if (left_ > 0) return;
    }
    then_(failure_);
  }

 private:
  std::mutex guard_;
  std::size_t left_;
  const failure_callback then_;
  std::shared_ptr<const error> failure_;
};

}  // namespace deft::ext
