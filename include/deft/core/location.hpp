// SPDX-License-Identifier: Apache-2.0
// deft/core/location.hpp: the source location that made a node.
#pragma once
#include <deft/core/config.hpp>
#include <memory>
#include <string>
#include <utility>

namespace deft::ext {

/// A source location: file and line. The file name is a literal, or kept by an owned_location.
struct source_location {
  const char* file = "";
  unsigned line = 0;
  bool approximate = false;  ///< the line is near: an operator cannot know its own

  constexpr source_location() = default;
  /// Of two arguments at least, so that `{0}`, an axis, is no source location.
  constexpr source_location(const char* f, unsigned l, bool is_near = false)
      : file(f), line(l), approximate(is_near) {}

  constexpr bool known() const { return line != 0; }
  constexpr source_location nearby() const { return {file, line, true}; }
  friend constexpr bool operator==(const source_location&, const source_location&) = default;
};

/// The source location of the caller, as a default argument: `source_location w = here()`. From
/// compiler built-ins, as clang 14 lacks std::source_location.
constexpr source_location here(const char* file = __builtin_FILE(),
                               unsigned line = __builtin_LINE()) {
  return {file, line, false};
}

/// "model.cpp:31", without folders; empty if unknown.
std::string to_string(const source_location& w);

/// The same with its preposition: "at model.cpp:31", or "near model.cpp:31".
std::string where_of(const source_location& w);

/// A source location that keeps the name of its file, if that came from a peer.
struct owned_location : source_location {
  owned_location() = default;
  owned_location(const source_location& w) : source_location(w) {}
  owned_location(const char* literal, unsigned l) : source_location(literal, l) {}
  owned_location(std::shared_ptr<const std::string> f, unsigned l, bool is_near)
      : source_location(f->c_str(), l, is_near), name_(std::move(f)) {}

 private:
  std::shared_ptr<const std::string> name_;
};

}  // namespace deft::ext
