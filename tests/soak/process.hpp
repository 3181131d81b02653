// SPDX-License-Identifier: Apache-2.0
// tests/soak/process.hpp: a task as a child process, and what /proc says of it.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deft/core/text.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "board.hpp"

extern char** environ;

namespace soak {

/// This program again. Killed and waited for with its handle.
class process {
 public:
  process() = default;
  /// With the descriptors of board.hpp and no others; writes to the end of `log`.
  process(std::vector<std::string> arguments, int listen, int shared, const std::string& log) {
    arguments.insert(arguments.begin(), "/proc/self/exe");
    std::vector<char*> argv;
    for (auto& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    const int flags = O_WRONLY | O_CREAT | O_APPEND;
    ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, 1, log.c_str(), flags, 0600);
    ::posix_spawn_file_actions_adddup2(&files, 1, 2);
    ::posix_spawn_file_actions_adddup2(&files, listen, listen_fd);
    ::posix_spawn_file_actions_adddup2(&files, shared, board_fd);
    ::posix_spawn_file_actions_addclosefrom_np(&files, board_fd + 1);
    const int failed = ::posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    if (failed) throw std::system_error(failed, std::generic_category(), "posix_spawn");
  }
  process(process&& other) noexcept { *this = std::move(other); }
  process& operator=(process&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(status_, other.status_);
    return *this;
  }
  ~process() { kill(); }

  void signal(int number) const {
    if (running()) ::kill(pid_, number);
  }
  void kill() {
    if (!running()) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    status_ = status;
  }
  /// Whether it was started, and its end was not seen yet.
  bool running() const { return pid_ > 0 && !status_; }
  /// How it has ended, if it has: "exit code 1", "Segmentation fault".
  std::optional<std::string> ended() {
    int status = 0;
    if (running() && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    if (!status_) return {};
    return WIFSIGNALED(*status_) ? std::string(::strsignal(WTERMSIG(*status_)))
                                 : deft::ext::str("exit code ", WEXITSTATUS(*status_));
  }

  std::uint64_t descriptors() const {
    const auto entries = std::filesystem::directory_iterator(deft::ext::str("/proc/", pid_, "/fd"));
    return static_cast<std::uint64_t>(std::distance(begin(entries), end(entries)));
  }
  /// Of /proc/PID/status: "VmRSS" in KiB, "Threads".
  std::uint64_t status(const std::string& name) const {
    std::ifstream file(deft::ext::str("/proc/", pid_, "/status"));
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1));
    return 0;
  }

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

}  // namespace soak
