// SPDX-License-Identifier: Apache-2.0
// deft/session/threads/watchdog.hpp: stops steps of this task when their time is over.
#pragma once
#include <atomic>
#include <deft/transport/message.hpp>
#include <stop_token>

namespace deft {

/// Requests a stop once one of two others is requested, or the time is over, until it is destroyed.
/// A time costs no thread switch: one thread of the process looks every few milliseconds while
/// anyone is watched.
class watched {
 public:
  watched(deadline until, const std::stop_token& cancel, const std::stop_token& closed);
  ~watched();
  watched(const watched&) = delete;

  std::stop_token stop() const { return stop_.get_token(); }
  /// It was the time.
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
  watched *before_ = nullptr, *after_ = nullptr;  ///< of all whose time is watched
  const std::stop_callback<forward> on_cancel_, on_close_;
};

}  // namespace deft
