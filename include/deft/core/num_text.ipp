// SPDX-License-Identifier: Apache-2.0
// deft/core/num_text.ipp: constants as text.
#pragma once
#include <charconv>
#include <deft/core/num_text.hpp>

namespace deft::ext::num {
namespace {

template <class C>
std::string written(C c) {
  char digits[32];
  return "T(" + std::string(digits, std::to_chars(digits, digits + sizeof digits, c).ptr) + ")";
}

}  // namespace

std::string text::constant(std::int64_t c) { return written(c); }
std::string text::constant(float c) { return written(c); }
std::string text::constant(double c) { return written(c); }

}  // namespace deft::ext::num
