// SPDX-License-Identifier: Apache-2.0
// deft/observe/chrome_trace.hpp: traces of steps as pages that a browser shows.
#pragma once
#include <deft/core/step_trace.hpp>
#include <string>

namespace deft {

namespace ext {

/// `t` in Chrome's JSON format, which https://ui.perfetto.dev and chrome://tracing show: a process
/// for each task, a row for each device and lane, times from the first event on.
std::string chrome_trace(const step_trace& t);

}  // namespace ext

/// The same as a file, replaced at once. Throws not_found or unavailable if it cannot be written,
/// resource_exhausted if the disk is full.
void write_chrome_trace(const std::string& path, const step_trace& t);

}  // namespace deft
