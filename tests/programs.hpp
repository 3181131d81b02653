// SPDX-License-Identifier: Apache-2.0
// tests/programs.hpp: where the programs of tests/programs are.
#pragma once
#include <filesystem>
#include <string>

namespace testing {

/// The path of a program of tests/programs: next to the running one, wherever that was moved to.
inline std::string program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename(name).string();
}

}  // namespace testing
