// SPDX-License-Identifier: Apache-2.0
// deft/session/threads/awaited.hpp: what another thread brings to one that waits for it.
#pragma once
#include <atomic>
#include <deft/core/error.hpp>
#include <deft/transport/channel_group.hpp>
#include <memory>
#include <utility>

namespace deft {

struct no_value {};

/// A value, or why there is none. Shared by who waits on the channels and who brings it: who has
/// waited long enough just goes.
template <class Value = no_value>
class awaited {
 public:
  /// Once.
  void bring(channel_group& h, std::shared_ptr<const error> failure, Value v = {}) {
    value_ = std::move(v);
    failure_ = std::move(failure);
    over_ = true;
    h.notify();
  }
  bool over() const { return over_; }
  /// Throws the failure. Only once it is over.
  Value& get() {
    if (failure_) throw error(*failure_);
    return value_;
  }

 private:
  Value value_{};
  std::shared_ptr<const error> failure_;
  std::atomic<bool> over_{false};
};

}  // namespace deft
