// SPDX-License-Identifier: Apache-2.0
// tests/testing.hpp: doctest, and what the tests of every folder share.
#pragma once
#include <doctest/doctest.h>
#include <deft/core/error.hpp>
#include <deft/core/text.hpp>
#include <string>

namespace testing {

/// What `f` throws as "code: sentence"; empty if it returns.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const deft::error& e) {
    return deft::ext::str(e.code(), ": ", e.what());
  }
  return {};
}

}  // namespace testing

/// A failed CHECK prints whatever deft can print.
template <class T>
requires requires(const T& v) { to_string(v); }
struct doctest::StringMaker<T> {
  static doctest::String convert(const T& v) { return std::string(to_string(v)).c_str(); }
};
