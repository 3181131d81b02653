// SPDX-License-Identifier: Apache-2.0
// tests/data/temporary_folder.hpp: a folder for one test.
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace testing {

class temporary_folder {
 public:
  temporary_folder() {
    static int made = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("deft_test_" + std::to_string(getpid()) + "_" + std::to_string(made++));
    std::filesystem::create_directories(path_);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Limits the size of files that this process writes, as a disk does that is full.
class file_size_limit {
 public:
  explicit file_size_limit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  file_size_limit(const file_size_limit&) = delete;
  ~file_size_limit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

inline std::string read_bytes(const std::filesystem::path& p) {
  std::ifstream f(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}
inline void write_bytes(const std::filesystem::path& p, const std::string& bytes) {
  std::ofstream(p, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// The names of the files and folders in it, sorted.
inline std::vector<std::string> names_in(const temporary_folder& folder) {
  std::vector<std::string> names;
  for (const auto& f : std::filesystem::directory_iterator(folder.path()))
    names.push_back(f.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace testing
