// SPDX-License-Identifier: Apache-2.0
// deft/session/watchdog.hpp: stops steps of this task when their time is over.
#pragma once
#include <atomic>
#include <deft/transport/message.hpp>

namespace deft {

/// Sets `stop` once one of `flags` is set, or the time is over, until it is destroyed. Costs no
/// thread switch: one thread of the process looks every few milliseconds while anyone is watched.
class watched {
 public:
  watched(deadline until, const std::atomic<bool>* cancel, const std::atomic<bool>* closed);
  ~watched();
  watched(const watched&) = delete;

  const std::atomic<bool>* stop() const { return &stop_; }
  /// It was the time.
  bool late() const { return late_; }

 private:
  friend class watchdog;
  const deadline until_;
  const std::atomic<bool>* flags_[2];
  std::atomic<bool> stop_{false}, late_{false};
  watched *before_ = nullptr, *after_ = nullptr;  ///< of all that are watched
};

}  // namespace deft
