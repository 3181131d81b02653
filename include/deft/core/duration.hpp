// SPDX-License-Identifier: Apache-2.0
// deft/core/duration.hpp: durations as text.
#pragma once
#include <chrono>
#include <deft/core/config.hpp>
#include <string>

namespace deft::ext {

/// A duration in messages: "60 s", "1.2 s", "250 ms".
std::string duration_text(std::chrono::nanoseconds d);

}  // namespace deft::ext
