// SPDX-License-Identifier: Apache-2.0
// tests/environment.hpp: variables of the environment that tests set.
#pragma once
#include <cstdlib>
#include <string>

namespace testing {

/// An environment variable, for as long as this lives; unset for a null pointer.
class environment {
 public:
  environment(const char* name, const char* value) : name_(name) {
    const char* const old = std::getenv(name);
    was_there_ = old != nullptr;
    if (old) before_ = old;
    set(value);
  }
  ~environment() { set(was_there_ ? before_.c_str() : nullptr); }
  environment(const environment&) = delete;

 private:
  void set(const char* value) { value ? setenv(name_.c_str(), value, 1) : unsetenv(name_.c_str()); }

  std::string name_, before_;
  bool was_there_;
};

}  // namespace testing
