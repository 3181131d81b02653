// SPDX-License-Identifier: Apache-2.0
// tests/session/processes.hpp: programs of tests/programs as child processes.
#pragma once
#include <signal.h>

#include <boost/process.hpp>
#include <string>
#include <vector>

#include "testing.hpp"

namespace testing {

/// A child whose output is read line by line; killed with the test.
class child_program {
 public:
  child_program(const std::string& name, std::vector<std::string> arguments)
      : child_(std::string(DEFT_TEST_PROGRAMS "/") + name, boost::process::args(arguments),
               boost::process::std_out > out_, boost::process::std_err > err_) {}
  ~child_program() {
    if (child_.running()) child_.terminate();
  }

  /// The next line; empty at the end.
  std::string line() {
    std::string text;
    std::getline(out_, text);
    return text;
  }
  std::vector<std::string> lines() {
    std::vector<std::string> all;
    for (std::string text; std::getline(out_, text);) all.push_back(text);
    return all;
  }
  /// What it said on standard error; after lines().
  std::string complaints() {
    return {std::istreambuf_iterator<char>(err_), std::istreambuf_iterator<char>()};
  }
  int wait() {
    child_.wait();
    return child_.exit_code();
  }
  int pid() const { return child_.id(); }
  void signal(int number) { ::kill(child_.id(), number); }

 private:
  boost::process::ipstream out_, err_;
  boost::process::child child_;
};

}  // namespace testing
