// SPDX-License-Identifier: Apache-2.0
// tests/soak/cuts.cpp: connections that are broken while nothing is sent on them.
#include <cstdio>
#include <deft/core/failure.hpp>
#include <map>

#include "cluster.hpp"
#include "jobs.hpp"

using namespace deft;
using namespace deft::ext;
using namespace std::chrono_literals;

namespace soak {
namespace {

using clock = std::chrono::steady_clock;

constexpr int ps_tasks = 2;

/// Two parameter servers and a worker, on each of which a variable grows by 1 in every step. A
/// client's session has the worker as its master, whose connections to the servers are broken.
class cut_test {
 public:
  cut_test(double minutes, std::uint64_t seed)
      : dice_(seed),
        end_(clock::now() + std::chrono::duration_cast<clock::duration>(
                                std::chrono::duration<double>(60 * minutes))),
        cluster_(ps_tasks, 1, folder_.path(), make_board(1), {"--serves=all"}) {}

  void run() {
    cluster_.start_all();
    const char* const places[] = {"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"};
    std::vector<assigned<tensor<std::int64_t>>> add;
    std::vector<placeholder<std::int64_t>> one;
    for (const char* p : places) {
      auto there = on(device(p));
      counts_.emplace_back(str("count_", counts_.size()), 0);
      one.emplace_back(str("one_", one.size()));
      add.push_back(counts_.back().assign_add(one.back()));
    }
    session(cluster_.target(ps_tasks)).run(initialize_all());
    std::vector<std::int64_t> before = values();
    while (clock::now() < end_) {
      session s(cluster_.target(ps_tasks), {.timeout = 60s});
      for (bool sound = true; sound && clock::now() < end_;) {
        std::uint64_t number = 0;
        const auto failure = failure_of([&] {
          s.run(run_options{.step = &number}, add[0], add[1], add[2], one[0] = std::int64_t{1},
                one[1] = std::int64_t{1}, one[2] = std::int64_t{1});
        });
        if (failure && failure->code() != errc::unavailable && failure->code() != errc::aborted)
          violated("a step failed with ", failure->what());
        const step_fate fate = !failure      ? step_fate::applied
                               : number == 0 ? step_fate::unchanged
                                             : s.fate_of(number);
        const std::vector<std::int64_t> now = values();
        check(before, now, fate, failure ? failure->what() : "it succeeded");
        before = now;
        ++fates_[std::pair(failure != nullptr, fate)];
        sound = failure == nullptr || dice_.below(2) == 0;
        // Nothing is under way now.
        for (std::size_t cuts = dice_.below(4); cuts-- > 0;)
          cluster_.relay().inflict(dice_.below(2) ? harm::reset : harm::end, 0ms, dice_);
        if (dice_.below(2)) std::this_thread::sleep_for(std::chrono::milliseconds(dice_.below(20)));
      }
    }
  }

  void print(bool passed) const {
    std::printf("soak test of steps whose connections were cut before them\n");
    const char* const names[] = {"unknown", "applied", "in part", "unchanged"};
    for (const auto& [what, n] : fates_)
      std::printf("  %-10s %-10s %d\n", what.first ? "failed," : "succeeded,",
                  names[static_cast<int>(what.second)], n);
    if (passed)
      folder_.remove();
    else
      cluster_.print_logs();
  }

 private:
  /// Of all variables, each read from its own task.
  std::vector<std::int64_t> values() {
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < counts_.size(); ++i)
      all.push_back(session(cluster_.target(static_cast<int>(i))).run(counts_[i]));
    return all;
  }
  static void check(const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& now,
                    step_fate fate, const std::string& said) {
    std::vector<std::int64_t> grown;
    for (std::size_t i = 0; i < now.size(); ++i) grown.push_back(now[i] - before[i]);
    const auto made = std::ranges::count(grown, 1), not_made = std::ranges::count(grown, 0);
    const auto all = static_cast<std::ptrdiff_t>(grown.size());
    const bool right = made + not_made == all && (fate == step_fate::applied     ? made == all
                                                  : fate == step_fate::unchanged ? made == 0
                                                                                 : true);
    if (!right)
      violated("the variables grew by ", join(grown, ", "), " in a step that was ",
               fate == step_fate::applied     ? "applied"
               : fate == step_fate::unchanged ? "not applied"
                                              : "applied in part",
               "; ", said);
  }

  testing::dice dice_;
  const clock::time_point end_;
  scratch folder_;
  job_cluster cluster_;
  std::vector<variable<std::int64_t>> counts_;
  std::map<std::pair<bool, step_fate>, int> fates_;
};

}  // namespace

int run_cuts(double minutes, std::uint64_t seed) {
  graph g;
  const auto in = as_default(g);
  cut_test t(minutes, seed);
  const auto wrong = failure_of([&] { t.run(); });
  t.print(!wrong);
  std::printf("%s%s\n", wrong ? "FAILED: " : "passed", wrong ? wrong->what() : "");
  return wrong ? 1 : 0;
}

}  // namespace soak
