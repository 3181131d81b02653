// SPDX-License-Identifier: Apache-2.0
// tests/soak/cluster.hpp: the processes of a job behind a relay, which the test starts, kills and
// stops.
#pragma once
#include <deft/transport/listener.hpp>
#include <functional>
#include <stdexcept>

#include "process.hpp"
#include "relay.hpp"

namespace soak {

/// What must not be.
struct violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class... Parts>
[[noreturn]] void violated(const Parts&... parts) {
  throw violation(deft::ext::str(parts...));
}

/// A folder for logs and checkpoints.
class scratch {
 public:
  scratch() {
    path_ = (std::filesystem::temp_directory_path() / "deft_soak_XXXXXX").string();
    if (!::mkdtemp(path_.data())) violated("no folder ", path_);
  }
  const std::string& path() const { return path_; }
  void remove() const { std::filesystem::remove_all(path_); }

 private:
  std::string path_;
};

/// Shared memory that holds a `Board`, begins as zeros and outlives killed tasks.
inline int make_board(std::size_t bytes) {
  const int made = ::memfd_create("board", 0);
  if (made < 0 || ::ftruncate(made, static_cast<off_t>(bytes)) != 0) violated("no shared memory");
  // Of a number that is none of a task's descriptors.
  const int fd = ::fcntl(made, F_DUPFD_CLOEXEC, board_fd + 1);
  ::close(made);
  return fd;
}

/// Parameter servers, then workers.
class job_cluster {
 public:
  job_cluster(int servers, int workers, std::string folder, int shared,
              std::vector<std::string> flags)
      : servers_(servers),
        folder_(std::move(folder)),
        shared_(shared),
        flags_(std::move(flags)),
        relay_(servers + workers),
        processes_(static_cast<std::size_t>(servers + workers)),
        targets_(processes_.size()) {
    for (const char* job : {"ps", "worker"}) {
      std::vector<std::string> list;
      const int first = job == std::string("ps") ? 0 : servers;
      for (int t = first; t < (first ? size() : servers); ++t) list.push_back(relay_.address(t));
      flags_.push_back(deft::ext::str("--", job, "_hosts=", deft::ext::join(list, ",")));
    }
  }

  int size() const { return static_cast<int>(processes_.size()); }
  process& at(int t) { return processes_[static_cast<std::size_t>(t)]; }
  soak::relay& relay() { return relay_; }
  /// Where a task itself listens, for sessions that do not pass by the relay.
  const std::string& target(int t) const { return targets_[static_cast<std::size_t>(t)]; }
  std::string name_of(int t) const {
    return t < servers_ ? deft::ext::str("ps ", t) : deft::ext::str("worker ", t - servers_);
  }

  /// With more flags than all have.
  void start(int t, const std::vector<std::string>& more = {}) {
    const int listening = deft::ext::listen_socket("127.0.0.1:0");
    const std::string address = deft::ext::address_of_socket(listening);
    std::vector<std::string> arguments{t < servers_ ? "--job_name=ps" : "--job_name=worker"};
    arguments.insert(arguments.end(), flags_.begin(), flags_.end());
    arguments.push_back(deft::ext::str("--task_index=", t < servers_ ? t : t - servers_));
    arguments.push_back(deft::ext::str("--listen_fd=", listen_fd));
    arguments.insert(arguments.end(), {"--intra_op_threads=1", "--simulated_gpus=0"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    at(t) = process(arguments, listening, shared_, log_of(t));
    ::close(listening);
    relay_.lead_to(t,
                   static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    targets_[static_cast<std::size_t>(t)] = "deft://" + address;
  }
  void start_all() {
    for (int t = 0; t < size(); ++t) start(t);
  }
  void kill(int t) {
    at(t).kill();
    relay_.lead_to(t, 0);
  }

  /// The last lines that each task has written.
  void print_logs() const {
    for (int t = 0; t < size(); ++t) {
      std::ifstream file(log_of(t));
      std::vector<std::string> lines;
      for (std::string line; std::getline(file, line);) {
        lines.push_back(line);
        if (lines.size() > 20) lines.erase(lines.begin());
      }
      for (const auto& line : lines) std::printf("%s: %s\n", name_of(t).c_str(), line.c_str());
    }
    std::printf("all that the tasks have written is in %s\n", folder_.c_str());
  }

 private:
  std::string log_of(int t) const {
    return deft::ext::str(folder_, "/", t < servers_ ? "ps" : "worker",
                          t < servers_ ? t : t - servers_, ".log");
  }

  const int servers_;
  const std::string folder_;
  const int shared_;
  std::vector<std::string> flags_;
  soak::relay relay_;
  std::vector<process> processes_;
  std::vector<std::string> targets_;
};

}  // namespace soak
