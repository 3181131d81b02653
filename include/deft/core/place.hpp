// SPDX-License-Identifier: Apache-2.0
// deft/core/place.hpp: the place in the user's source that made a node.
#pragma once
#include <string>

namespace deft {

/// File and line. The file name must outlive the program's graphs: a literal, or interned.
struct source_place {
  const char* file = "";
  unsigned line = 0;
  bool approximate = false;  ///< what is meant stands nearby: an operator cannot know its own line

  constexpr bool known() const { return line != 0; }
  constexpr source_place nearby() const { return {file, line, true}; }
  friend constexpr bool operator==(const source_place&, const source_place&) = default;
};

/// The place of the caller, as a default argument: `source_place w = here()`. From compiler
/// built-ins, as clang 14 lacks std::source_location.
constexpr source_place here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
  return {file, line, false};
}

/// "model.cpp:31", without folders; empty if unknown.
std::string to_string(const source_place& w);
/// The same with its preposition: "at model.cpp:31", or "near model.cpp:31".
std::string where_of(const source_place& w);

/// A copy of `file` that lives as long as the process, for places that came over the wire.
const char* intern_file(const std::string& file);

}  // namespace deft
