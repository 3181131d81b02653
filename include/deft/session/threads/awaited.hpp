// SPDX-License-Identifier: Apache-2.0
// deft/session/threads/awaited.hpp: a value that one thread waits for and another provides.
#pragma once
#include <atomic>
#include <deft/core/error.hpp>
#include <deft/transport/channel_group.hpp>
#include <memory>
#include <utility>

namespace deft::ext {

struct no_value {};

/// A value, or the error instead of it. Shared by the thread that waits, on the channels, and the
/// one that provides it, so that the first may stop waiting at any time.
template <class Value = no_value>
class awaited {
 public:
  /// Provides the value or the error, and wakes the thread that waits on `h`; null if none does.
  /// Called once.
  void provide(channel_group* h, std::shared_ptr<const error> failure, Value v = {}) {
    value_ = std::move(v);
    failure_ = std::move(failure);
    over_ = true;
    if (h) h->notify();
  }
  bool over() const { return over_; }
  /// The value; throws the error. Only after over() is true.
  Value& get() {
    if (failure_) throw error(*failure_);
    return value_;
  }

 private:
  Value value_{};
  std::shared_ptr<const error> failure_;
  std::atomic<bool> over_{false};
};

}  // namespace deft::ext
