// SPDX-License-Identifier: Apache-2.0
// deft/session/threads/watchdog.hpp: stops steps of this task when their time is over.
#pragma once
#include <atomic>
#include <deft/transport/message.hpp>
#include <stop_token>

namespace deft {

/// Requests a stop once `cancel` is set, `closed` is requested, or the time is over, until it is
/// destroyed. Costs no thread switch: one thread of the process looks every few milliseconds while
/// anyone is watched.
class watched {
 public:
  watched(deadline until, const std::atomic<bool>* cancel, std::stop_token closed);
  ~watched();
  watched(const watched&) = delete;

  std::stop_token stop() const { return stop_.get_token(); }
  /// It was the time.
  bool late() const { return late_; }

 private:
  friend class watchdog;
  const deadline until_;
  const std::atomic<bool>* const cancel_;
  const std::stop_token closed_;
  std::stop_source stop_;
  std::atomic<bool> late_{false};
  watched *before_ = nullptr, *after_ = nullptr;  ///< of all that are watched
};

}  // namespace deft
