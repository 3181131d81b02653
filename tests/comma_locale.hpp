// SPDX-License-Identifier: Apache-2.0
// tests/comma_locale.hpp: a program whose locale writes 1.234,5.
#pragma once
#include <clocale>
#include <locale>
#include <string>

namespace testing {

/// Until its end the streams of the process, and the functions of C if the system has such a
/// locale, write a comma before fractions and points between thousands.
class comma_locale {
 public:
  comma_locale()
      : streams_(std::locale::global(std::locale(std::locale(), new comma))),
        c_(std::setlocale(LC_ALL, nullptr)) {
    for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"})
      if (std::setlocale(LC_ALL, name)) break;
  }
  comma_locale(const comma_locale&) = delete;
  ~comma_locale() {
    std::locale::global(streams_);
    std::setlocale(LC_ALL, c_.c_str());
  }

 private:
  struct comma final : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale streams_;
  std::string c_;
};

}  // namespace testing
