// SPDX-License-Identifier: Apache-2.0
// tests/soak/board.hpp: what the driver and the workers of a soak test tell each other, in memory
// that outlives a killed worker; and the variables that both know.
#pragma once
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deft/deft.hpp>
#include <string>
#include <system_error>
#include <vector>

namespace soak {

inline constexpr int servers = 2, workers = 6;
/// Descriptors that every task is started with.
inline constexpr int listen_fd = 3, board_fd = 4;
/// Elements of the large variables: frames are cut within their elements, too.
inline constexpr std::int64_t large = 65'536;

/// A counter: the number of steps that were to increment it, and that were acknowledged.
struct count {
  std::atomic<std::uint64_t> tried, acknowledged;
};

/// Each worker writes its own part only.
struct worker_board {
  std::array<count, servers> own;  ///< of variables that this worker alone increments
  std::array<count, servers> all;  ///< of variables that all workers increment
  count elements;                  ///< of its large variable
  std::atomic<std::uint64_t> steps, failures, sessions;
  std::atomic<std::uint32_t> paused;  ///< the last pause that it has reached
};

/// Begins as zeros.
struct board {
  std::atomic<std::uint32_t> pause;  ///< its number; 0: go on
  std::atomic<bool> stop;
  std::array<worker_board, workers> of_worker;

  static board& map(int fd) {
    void* at = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    return *static_cast<board*>(at);
  }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline std::string server_device(int i) { return deft::ext::str("/job:ps/task:", i, "/cpu:0"); }
inline std::string worker_device(int i) { return deft::ext::str("/job:worker/task:", i, "/cpu:0"); }

/// The variables of one worker, in the present graph.
struct worker_variables {
  explicit worker_variables(int worker)
      : elements(deft::on(deft::device(server_device(worker % servers)), [&] {
          return deft::variable<float, large>(deft::ext::str("elements_", worker), deft::zeros());
        })) {
    for (int p = 0; p < servers; ++p) {
      auto there = deft::on(deft::device(server_device(p)));
      own.emplace_back(deft::ext::str("own_", worker, "_", p), 0);
    }
  }
  std::vector<deft::variable<std::int64_t>> own;
  deft::variable<float, large> elements;
};

/// The variables of all workers.
inline std::vector<deft::variable<std::int64_t>> common_variables() {
  std::vector<deft::variable<std::int64_t>> all;
  for (int p = 0; p < servers; ++p) {
    auto there = deft::on(deft::device(server_device(p)));
    all.emplace_back(deft::ext::str("all_", p), 0);
  }
  return all;
}

/// The `main` of a parameter server or a worker.
int run_task(int argc, const char* const* argv);

}  // namespace soak
