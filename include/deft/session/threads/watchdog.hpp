// SPDX-License-Identifier: Apache-2.0
// deft/session/threads/watchdog.hpp: stops steps of this task after their deadline.
#pragma once
#include <atomic>
#include <deft/transport/message.hpp>
#include <stop_token>

namespace deft::ext {

/// While it lives, requests a stop once `cancel` or `closed` is requested or the deadline has
/// passed. A deadline costs no thread switch: one thread of the process checks all of them every
/// few milliseconds.
class watched {
 public:
  watched(deadline until, const std::stop_token& cancel, const std::stop_token& closed);
  ~watched();
  watched(const watched&) = delete;

  std::stop_token stop() const { return stop_.get_token(); }
  /// Whether the deadline has passed.
  bool late() const { return late_; }

 private:
  friend class watchdog;
  struct forward {
    std::stop_source to;
    void operator()() { to.request_stop(); }
  };
  const deadline until_;
  std::stop_source stop_;
  std::atomic<bool> late_{false};
  watched *before_ = nullptr, *after_ = nullptr;  ///< in the list of all that have a deadline
  const std::stop_callback<forward> on_cancel_, on_close_;
};

}  // namespace deft::ext
