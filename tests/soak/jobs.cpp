// SPDX-License-Identifier: Apache-2.0
// tests/soak/jobs.cpp: a training job under kills in each of its phases, long stops, and requests
// to end that reach all tasks at once.
#include "jobs.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <deft/core/failure.hpp>
#include <map>
#include <set>

#include "cluster.hpp"

using namespace deft;
using namespace deft::ext;
using namespace std::chrono_literals;

namespace soak {
namespace {

using clock = std::chrono::steady_clock;

constexpr int ps_tasks = 2, job_workers = 2, job_tasks = ps_tasks + job_workers;
constexpr int steps_of_a_checkpoint = 5;
/// For what takes milliseconds on an idle machine, after a task was lost.
constexpr auto patience = 120s;

/// What a worker is doing.
enum class phase : std::uint32_t { none, starting, training };

/// Each worker writes its own part only. Begins as zeros.
struct job_board {
  struct worker {
    std::atomic<phase> now;
    std::atomic<std::int64_t> step;  ///< the greatest that it has seen
  } of_worker[job_workers];

  static job_board& map(int fd) {
    void* at = ::mmap(nullptr, sizeof(job_board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) violated("no shared memory");
    return *static_cast<job_board*>(at);
  }
};
static_assert(std::atomic<phase>::is_always_lock_free);

/// Variables whose values are the number of rounds, as their gradient is -1 and the rate 1.
std::vector<variable<double>> counters() {
  std::vector<variable<double>> all;
  for (int p = 0; p < ps_tasks; ++p) {
    auto there = on(device(str("/job:ps/task:", p)));
    all.emplace_back(str("rounds_", p), 0.0);
  }
  return all;
}

}  // namespace

void train_job(task& self, const std::string& folder) {
  auto& mine = job_board::map(board_fd).of_worker[self.index()];
  mine.now = phase::starting;
  const auto all = counters();
  auto there = on(replica_device(self.cluster(), self.device()));
  const auto step = global_step();
  const auto train =
      sync_replicas(sgd(1.0), job_workers, job_workers).minimize(-(all[0] + all[1]), step);
  monitored_session s(
      self,
      {.checkpoint_dir = folder, .checkpoint_steps = steps_of_a_checkpoint, .max_to_keep = 3});
  while (!s.should_stop()) {
    mine.now = phase::training;
    s.run(train);
    const std::int64_t now = s.run(step);
    if (now > mine.step) mine.step = now;
  }
}

namespace {

class job_test {
 public:
  job_test(double minutes, std::uint64_t seed)
      : dice_(seed),
        length_(std::chrono::duration_cast<clock::duration>(
            std::chrono::duration<double>(60 * minutes))),
        checkpoints_(folder_.path() + "/checkpoints"),
        shared_(make_board(sizeof(job_board))),
        board_(job_board::map(shared_)),
        cluster_(ps_tasks, job_workers, folder_.path(), shared_,
                 {str("--trains=", checkpoints_), str("--file_root=", folder_.path())}) {}

  void run() {
    const auto end = clock::now() + length_;
    cluster_.start_all();
    await_progress("the start");
    // Each of them at least once, however short the test is.
    for (std::size_t i = 0; i < 8 || clock::now() < end; ++i) {
      switch (i < 8 ? i : dice_.below(8)) {
        case 0:
        case 1:
          kill_while("training", [&] { return is_in(phase::training); });
          break;
        case 2:
        case 3:
          kill_while("saving", [&] { return saves(); });
          break;
        case 4:
          kill_while_restoring();
          break;
        case 5:
          stop_for_long("the workers", {ps_tasks, ps_tasks + 1});
          break;
        case 6:
          stop_for_long("a parameter server", {static_cast<int>(dice_.below(ps_tasks))});
          break;
        default:
          end_all();
      }
    }
    end_all();
  }

  void print(bool passed) {
    // Which go on writing checkpoints.
    for (int t = 0; t < cluster_.size(); ++t) cluster_.kill(t);
    std::printf("soak test of a training job\n");
    for (const auto& [what, n] : done_) std::printf("  %-36s %d\n", what.c_str(), n);
    std::printf("  %-36s %d\n", "checkpoints of one moment", checked_);
    if (passed)
      folder_.remove();
    else
      cluster_.print_logs();
  }

 private:
  bool is_in(phase p) const {
    return std::ranges::any_of(board_.of_worker, [&](const auto& w) { return w.now == p; });
  }
  std::int64_t seen() const {
    std::int64_t most = 0;
    for (const auto& w : board_.of_worker) most = std::max(most, w.step.load());
    return most;
  }
  /// Whether files of a checkpoint are being written: there is one without an index.
  bool saves() const {
    std::error_code gone;
    std::set<std::string> indices, others;
    for (const auto& f : std::filesystem::directory_iterator(checkpoints_, gone)) {
      const std::string name = f.path().filename().string();
      const auto of = name.substr(0, name.find('.'));
      (name.ends_with(".index.json") ? indices : others).insert(of);
    }
    return !std::ranges::includes(indices, others);
  }
  template <class Ready>
  bool wait_until(Ready ready, clock::duration most = patience) {
    for (const auto until = clock::now() + most; !ready();) {
      if (clock::now() > until) return false;
      std::this_thread::sleep_for(200us);
    }
    return true;
  }
  /// Waits until the job trains, and nobody has ended who was not told to.
  void await_progress(const std::string& after) {
    for (auto& w : board_.of_worker) w.step = 0;
    const bool goes_on = wait_until([&] {
      for (int t = 0; t < cluster_.size(); ++t)
        if (const auto how = cluster_.at(t).ended())
          violated(cluster_.name_of(t), " has ended after ", after, ": ", *how);
      return std::ranges::all_of(board_.of_worker, [](const auto& w) { return w.step > 0; });
    });
    if (!goes_on) violated("nobody trains after ", after);
    check_checkpoints();
  }
  void kill_and_start(int t, const std::string& what) {
    cluster_.kill(t);
    std::this_thread::sleep_for(std::chrono::milliseconds(dice_.below(300)));
    if (t >= ps_tasks) board_.of_worker[t - ps_tasks].now = phase::none;
    cluster_.start(t);
    ++done_[str(cluster_.name_of(t), " killed while ", what)];
  }
  template <class Within>
  void kill_while(const std::string& what, Within within) {
    if (!wait_until(within)) violated("no task is ", what);
    std::this_thread::sleep_for(std::chrono::microseconds(dice_.below(3'000)));
    const int t = static_cast<int>(dice_.below(job_tasks));
    kill_and_start(t, what);
    await_progress(str(cluster_.name_of(t), " was killed while ", what));
  }
  /// A parameter server is lost, and then the chief, or the other server, while that is repaired.
  void kill_while_restoring() {
    kill_and_start(0, "training");
    std::this_thread::sleep_for(std::chrono::milliseconds(dice_.below(500)));
    kill_and_start(dice_.below(2) ? ps_tasks : 1, "restoring");
    await_progress("two tasks were killed one after the other");
  }
  void stop_for_long(const std::string& what, std::initializer_list<int> which) {
    const auto time = std::min<clock::duration>(length_ / 5, 40s);
    for (int t : which) cluster_.at(t).signal(SIGSTOP);
    std::this_thread::sleep_for(time);
    for (int t : which) cluster_.at(t).signal(SIGCONT);
    ++done_[str(what, " stopped for long")];
    await_progress(what + " stopped for long");
  }
  /// As Ctrl-C and a cluster's manager do it. What was trained is in the last checkpoint.
  void end_all() {
    const std::int64_t before = seen();
    for (int t = 0; t < cluster_.size(); ++t) cluster_.at(t).signal(SIGTERM);
    for (int t = 0; t < cluster_.size(); ++t)
      if (!wait_until([&] { return cluster_.at(t).ended().has_value(); }))
        violated(cluster_.name_of(t), " does not end");
    ++done_["all told to end at once"];
    if (const auto last = check_checkpoints(); last < before)
      violated("the last checkpoint is of step ", last, ", and step ", before, " had been made");
    for (auto& w : board_.of_worker) w.now = phase::none;
    cluster_.start_all();
    await_progress("all tasks were told to end, and started again");
  }
  /// Every checkpoint holds the values of one step, that of its name. Returns the last one's.
  std::int64_t check_checkpoints() {
    graph g;
    const auto in = as_default(g);
    std::vector<variable<double>> rounds;
    for (int p = 0; p < ps_tasks; ++p) rounds.emplace_back(str("rounds_", p), 0.0);
    const auto step = global_step();
    std::int64_t last = -1;
    session s;
    for (const auto& path : std::filesystem::exists(checkpoints_) ? checkpoints_in(checkpoints_)
                                                                  : std::vector<std::string>()) {
      if (failure_of([&] { saver().restore(s, path); })) continue;  // just deleted
      const std::int64_t n = s.run(step);
      for (const auto& r : rounds)
        if (const double made = s.run(r); made != static_cast<double>(n))
          violated(path, " holds the values of ", made, " rounds, and global step ", n);
      if (path.substr(path.rfind('-') + 1) != str(n)) violated(path, " is of step ", n);
      last = n;
      ++checked_;
    }
    return last;
  }

  testing::dice dice_;
  const clock::duration length_;
  scratch folder_;
  const std::string checkpoints_;
  const int shared_;
  job_board& board_;
  job_cluster cluster_;
  std::map<std::string, int> done_;
  int checked_ = 0;
};

}  // namespace

int run_jobs(double minutes, std::uint64_t seed) {
  job_test t(minutes, seed);
  const auto wrong = failure_of([&] { t.run(); });
  t.print(!wrong);
  std::printf("%s%s\n", wrong ? "FAILED: " : "passed", wrong ? wrong->what() : "");
  return wrong ? 1 : 0;
}

}  // namespace soak
