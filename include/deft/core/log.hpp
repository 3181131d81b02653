// SPDX-License-Identifier: Apache-2.0
// deft/core/log.hpp: lines on standard error, from a level on (`DEFT_LOG=info`).
#pragma once
#include <deft/core/text.hpp>
#include <string>

namespace deft::logging {

enum class level : int { debug = 0, info = 1, warning = 2, error = 3, off = 4 };

/// The level from which lines are written: that of `set_level`, else that of the environment
/// variable DEFT_LOG (debug, info, warning, error or off), else warning.
level threshold();
/// Sets the level of the whole process, which then ignores DEFT_LOG.
void set_level(level l);
/// Writes one line whatever the level in force, with time and level in front, in a single call.
void write(level l, const std::string& text);
/// Receives lines instead of standard error, on the threads that log them.
using sink = void (*)(level, const std::string&);
/// Sends all lines of the process to `s`; nullptr sends them to standard error again.
void set_sink(sink s);

/// Writes `parts` joined, if the level in force is `l` or lower. They become text only then.
template <class... Parts>
void log(level l, const Parts&... parts) {
  if (l >= threshold()) write(l, str(parts...));
}
template <class... Parts>
void info(const Parts&... parts) {
  log(level::info, parts...);
}
template <class... Parts>
void warning(const Parts&... parts) {
  log(level::warning, parts...);
}

}  // namespace deft::logging
