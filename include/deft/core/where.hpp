// SPDX-License-Identifier: Apache-2.0
// deft/core/where.hpp: the place in the user's source that made a node.
#pragma once
#include <string>

namespace deft {

/// File and line, from compiler built-ins (clang 14 lacks std::source_location).
/// The file name must outlive the program's graphs: a literal, or interned.
struct where {
  const char* file = "";
  unsigned line = 0;

  static constexpr where here(const char* file = __builtin_FILE(),
                              unsigned line = __builtin_LINE()) {
    return {file, line};
  }
  constexpr bool known() const { return line != 0; }
  friend constexpr bool operator==(const where&, const where&) = default;
};

/// "model.cpp:31", without folders; empty if unknown.
std::string to_string(const where& w);

/// A copy of `file` that lives as long as the process, for places that came over the wire.
const char* intern_file(const std::string& file);

}  // namespace deft
