// SPDX-License-Identifier: Apache-2.0
// deft/core/limited_log.hpp: log lines that peers may cause, limited in rate.
#pragma once
#include <atomic>
#include <deft/core/log.hpp>

namespace deft::logging {

/// Lines of one kind: at most one a second, or one each `milliseconds`. A line says how many were
/// left out before it. Thread-safe.
class limited {
 public:
  /// At most one line each `milliseconds`.
  explicit limited(int milliseconds = 1000) : interval_(milliseconds * 1'000'000ll) {}
  /// Logs `parts` joined as one line, or counts it if the last one was written too short a time
  /// ago. Lines below threshold() are neither written nor counted.
  template <class... Parts>
  void log(level l, const Parts&... parts) {
    if (l < threshold()) return;
    if (const auto others = admit(); others == 0)
      write(l, str(parts...));
    else if (others > 0)
      write(l, str(parts..., " (and ", others, " more)"));
  }

 private:
  /// How many were left out since the last one; -1 if this one is, too.
  long long admit();

  const long long interval_;        ///< nanoseconds
  std::atomic<long long> next_{0};  ///< when the next may come, in nanoseconds of the steady clock
  std::atomic<long long> left_out_{0};
};

}  // namespace deft::logging
