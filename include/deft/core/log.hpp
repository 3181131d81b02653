// SPDX-License-Identifier: Apache-2.0
// deft/core/log.hpp: lines on standard error, off below a level (`DEFT_LOG=info`).
#pragma once
#include <deft/core/text.hpp>
#include <string>

/// What deft logs: to standard error, or where set_sink() says. `DEFT_LOG=info` in the environment,
/// or `logging::set_level(logging::level::info)`, shows lines of level info, too. All functions may
/// be called from any thread.
namespace deft::logging {

using namespace ext;

/// How important a line is. Those below threshold() are not written.
enum class level : int { debug = 0, info = 1, warning = 2, error = 3, off = 4 };

/// The level that DEFT_LOG=`text` means; warning if `text` is null or empty, and, with a line that
/// says so, if it is not a level.
level level_of(const char* text);
/// The level in force: that of `set_level`, or else of the environment variable DEFT_LOG, or else
/// warning.
level threshold();
/// Lines below level `l` are not logged. Overrides DEFT_LOG.
void set_level(level l);
/// Writes one entry in a single call: time, level, the environment variable DEFT_LOG_NAME if set,
/// and the text, escaped as by printable(); further lines of the text are indented.
void write(level l, const std::string& text);
/// A function that receives log lines, without the time, from any thread.
using sink = void (*)(level, const std::string&);
/// Sends log lines to `s` instead of standard error; nullptr restores standard error.
void set_sink(sink s);

/// Logs `parts`, joined as one entry, if `l` is not below threshold().
template <class... Parts>
void log(level l, const Parts&... parts) {
  if (l >= threshold()) write(l, str(parts...));
}
/// Logs `parts`, joined as one entry, at level info: `logging::info("epoch ", n, " of ", epochs)`.
template <class... Parts>
void info(const Parts&... parts) {
  log(level::info, parts...);
}
/// Logs `parts`, joined as one entry, at level warning.
template <class... Parts>
void warning(const Parts&... parts) {
  log(level::warning, parts...);
}

}  // namespace deft::logging
