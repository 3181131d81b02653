// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <atomic>
#include <deft/kernels/team.hpp>
#include <deft/plan/thresholds.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {
/// Whether the system reports that all other threads of this process sleep.
bool others_sleep() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::gettid())) continue;
    std::ifstream file(task.path() / "stat");
    const std::string stat(std::istreambuf_iterator<char>(file), {});
    const auto name_ends = stat.rfind(')');
    if (name_ends != stat.npos && stat.compare(name_ends + 1, 2, " S") != 0) return false;
  }
  return true;
}

struct threads_scope {
  explicit threads_scope(int n) { set_intra_op_threads(n); }
  ~threads_scope() { set_intra_op_threads(0); }
};
}  // namespace

TEST_CASE("every chunk runs once, whatever the number of threads") {
  for (int threads : {1, 2, 3, 8}) {
    threads_scope scope(threads);
    for (std::int64_t chunks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(chunks));
      parallel_chunks(chunks, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
      CHECK(std::accumulate(runs.begin(), runs.end(), 0) == chunks);
      for (auto& r : runs) CHECK(r == 1);
    }
  }
}

TEST_CASE("a team wakes up again after it slept") {
  threads_scope scope(4);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> sum = 0;
    parallel_chunks(16, [&](std::int64_t i) { sum += static_cast<int>(i); });
    CHECK(sum == 120);
    while (round % 5 == 4 && !others_sleep()) std::this_thread::yield();
  }
}

TEST_CASE("nested and concurrent calls run on their own thread") {
  threads_scope scope(4);
  std::atomic<int> sum = 0;
  auto work = [&] {
    for (int i = 0; i < 50; ++i)
      parallel_chunks(4, [&](std::int64_t) { parallel_chunks(3, [&](std::int64_t) { ++sum; }); });
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(work);
  for (auto& t : threads) t.join();
  CHECK(sum == 3 * 50 * 4 * 3);
}

TEST_CASE("the error of the lowest chunk is thrown, and the team stays usable") {
  threads_scope scope(4);
  for (int round = 0; round < 10; ++round) {
    CHECK(testing::error_of([&] {
            parallel_chunks(100, [&](std::int64_t i) {
              if (i % 10 == 3) fail(errc::invalid_argument, "chunk ", i);
            });
          }) == "invalid_argument: chunk 3");
    std::atomic<int> ran = 0;
    parallel_chunks(10, [&](std::int64_t) { ++ran; });
    CHECK(ran == 10);
  }
}

TEST_CASE("work is split from a threshold on, a lower one while the team is awake") {
  threads_scope scope(4);
  const auto wake = [] { parallel_chunks(4, [](std::int64_t) {}); };
  wake();
  CHECK_FALSE(worth_splitting(thresholds::awake_team - 1));
  CHECK(worth_splitting(thresholds::asleep_team));
  // A team that has just worked is awake, unless this thread was suspended in between.
  while (!worth_splitting(thresholds::awake_team)) wake();
  while (!others_sleep()) std::this_thread::yield();
  CHECK_FALSE(worth_splitting(thresholds::asleep_team - 1));
  CHECK(worth_splitting(thresholds::asleep_team));
  set_intra_op_threads(1);
  CHECK_FALSE(worth_splitting(thresholds::asleep_team));
  CHECK(intra_op_threads() == 1);
}

TEST_CASE("work that comes again and again wakes the team") {
  threads_scope scope(4);
  parallel_chunks(4, [](std::int64_t) {});
  while (!others_sleep()) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) CHECK_FALSE(worth_splitting(thresholds::missed_team - 1));
  // As much in sum as wakes it at once; more of it if this thread was suspended in between. The
  // first time, with what other tests have left.
  constexpr double calls = thresholds::asleep_team / thresholds::missed_team;
  while (!worth_splitting(thresholds::missed_team)) {
  }
  int made = 1;
  while (!worth_splitting(thresholds::missed_team)) ++made;
  CHECK(made >= calls);
  CHECK_FALSE(worth_splitting(thresholds::missed_team));
}

TEST_CASE("work in a chunk is not split again") {
  threads_scope scope(4);
  parallel_chunks(4, [](std::int64_t) { CHECK_FALSE(worth_splitting(thresholds::asleep_team)); });
}
