// SPDX-License-Identifier: Apache-2.0
// deft/core/printable.hpp: text that came from a peer or a file, for errors, logs and terminals.
#pragma once
#include <cstddef>
#include <deft/core/config.hpp>
#include <string>
#include <string_view>

namespace deft::ext {

/// `text` with everything escaped that a terminal would not just show: control characters, those
/// that change the direction of text or are invisible, and bytes that are not UTF-8 ("\n", "\x1b",
/// "\u202e"). What is longer than `most` bytes is cut off, with "…" in its place. Text that is
/// escaped already stays as it is.
std::string printable(std::string_view text, std::size_t most = 4096);
/// The same of several lines, of which all but the first are indented: whatever they say, they are
/// one entry of a log.
std::string printable_lines(std::string_view text);

}  // namespace deft::ext
