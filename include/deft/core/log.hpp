// SPDX-License-Identifier: Apache-2.0
// deft/core/log.hpp: lines on standard error, off below a level (`DEFT_LOG=info`).
#pragma once
#include <deft/core/text.hpp>
#include <string>

namespace deft::logging {

enum class level : int { debug = 0, info = 1, warning = 2, error = 3, off = 4 };

/// The level in force: `set_level`, else the environment's DEFT_LOG, else warning.
level threshold();
void set_level(level l);
/// Writes one line, time and level first, in a single call.
void write(level l, const std::string& text);
/// Where lines go instead of standard error; nullptr sets them back. For tests.
using sink = void (*)(level, const std::string&);
void set_sink(sink s);

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
