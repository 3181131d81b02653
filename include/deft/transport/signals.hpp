// SPDX-License-Identifier: Apache-2.0
// deft/transport/signals.hpp: calls a function on SIGINT and SIGTERM. Internal.
#pragma once
#include <deft/core/config.hpp>
#include <functional>
#include <memory>

namespace deft::detail {

/// Calls `f`, on a thread of its own, with the number of the first SIGINT or SIGTERM; the next one
/// has its default action, and ends the process. A signal that the program ignores or handles
/// itself is left alone.
class termination_signals {
 public:
  explicit termination_signals(std::function<void(int)> f);
  /// Waits for `f` to return. Afterwards signals have their default action again.
  ~termination_signals();
  termination_signals(const termination_signals&) = delete;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace deft::detail
