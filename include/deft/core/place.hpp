// SPDX-License-Identifier: Apache-2.0
// deft/core/place.hpp: the source location that made a node.
#pragma once
#include <string>

namespace deft {

/// A source location: file and line. The file name must outlive the program's graphs: a literal, or
/// interned.
struct source_place {
  const char* file = "";
  unsigned line = 0;
  bool approximate = false;  ///< the line is near: an operator cannot know its own

  constexpr bool known() const { return line != 0; }
  constexpr source_place nearby() const { return {file, line, true}; }
  friend constexpr bool operator==(const source_place&, const source_place&) = default;
};

/// The source location of the caller, as a default argument: `source_place w = here()`. From
/// compiler built-ins, as clang 14 lacks std::source_location.
constexpr source_place here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  return {file, line, false};
}

/// "model.cpp:31", without folders; empty if unknown.
std::string to_string(const source_place& w);
/// The same with its preposition: "at model.cpp:31", or "near model.cpp:31".
std::string where_of(const source_place& w);

/// A copy of `file` that lives as long as the process, for source locations received from a peer.
const char* intern_file(const std::string& file);

}  // namespace deft
