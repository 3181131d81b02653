// SPDX-License-Identifier: Apache-2.0
// tests/soak/soak.cpp [--scenario steps] [--minutes N] [--seed S] [--steps direct]: two parameter
// servers and six workers, each a process, whose connections go through a relay. Workers are killed
// and started again, tasks are stopped for a moment, connections are broken in every way. Now and
// then the workers pause, and then
//   - every counter is at least what was acknowledged, and at most what was tried;
//   - tasks that were never killed have as many descriptors as before, and no more memory.
// No step may hang, and at the end all processes end by themselves. With `--steps direct` no step
// has values that two tasks send each other past the worker.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>

#include "board.hpp"
#include "cluster.hpp"
#include "jobs.hpp"

using namespace deft;
using namespace deft::ext;
using namespace std::chrono_literals;

namespace soak {
namespace {

using clock = std::chrono::steady_clock;

constexpr int tasks = servers + workers;
/// Worker 0 and the parameter servers live as long as the test; at most so many others are dead at
/// a time.
constexpr int dead_at_most = 2;
/// For what takes milliseconds on an idle machine.
constexpr auto patience = 120s;
/// A task has at most a connection from and one to each other task, above what it begins with.
constexpr std::uint64_t more_descriptors = 2 * (tasks - 1);
/// Above the most that was seen in the first quarter: the allocator's, whose free memory depends on
/// which threads ran when.
constexpr std::uint64_t more_memory = 24 << 10;  // KiB

/// A task at a pause.
struct sample {
  std::uint64_t descriptors = 0, memory = 0, threads = 0;
};

class driver {
 public:
  driver(double minutes, std::uint64_t seed, std::string steps)
      : seed_(seed),
        steps_(std::move(steps)),
        dice_(seed),
        length_(std::chrono::duration_cast<clock::duration>(
            std::chrono::duration<double>(60 * minutes))),
        shared_(make_board(sizeof(board))),
        board_(board::map(shared_)),
        cluster_(servers, workers, folder_.path(), shared_, {}) {}

  void run() {
    began_ = clock::now();
    for (int p = 0; p < servers; ++p) start(p);
    in_session([](session& s) { s.run(initialize_all()); });
    for (int p = 0; p < servers; ++p) at_first_.push_back(observe(p));
    for (int w = 0; w < workers; ++w) start(servers + w);
    pause();
    at_first_.push_back(observe(servers));
    // What it begins with has its connections already, as far as there are some.
    const auto end = began_ + length_;
    const auto round = std::max<clock::duration>(length_ / 40, 5s);
    const int rounds = std::max(4, static_cast<int>(length_ / round));
    for (int i = 0; i < rounds; ++i) {
      resume();
      disturb(i + 1 == rounds ? end : began_ + (i + 1) * (length_ / rounds));
      calm();
      pause();
      check_counters();
      settle();
    }
    check_memory();
    finish();
  }

  void print_table() const {
    std::uint64_t steps = 0, failures = 0, sessions = 0;
    for (const auto& w : board_.of_worker)
      steps += w.steps, failures += w.failures, sessions += w.sessions;
    const auto seconds = std::chrono::duration<double>(clock::now() - began_).count();
    std::printf("soak test of %.0f s with seed %llu\n", seconds, ull(seed_));
    row("steps", str(steps, " acknowledged, ", failures, " failed, in ", sessions, " sessions"));
    row("workers", str(done_.at("killed"), " killed and started again, ", done_.at("workers"),
                       " stopped for a moment"));
    row("parameter servers", str(done_.at("servers"), " stopped for a moment"));
    std::vector<std::string> broken;
    for (const char* name : harm_names) broken.push_back(str(done_.at(name), " ", name));
    row("connections", join(broken, ", "));
    row("counters",
        str(counters_checked_, " between acknowledged and tried, at ", pauses_, " pauses"));
    for (std::size_t t = 0; t < samples_.size(); ++t) {
      if (samples_[t].empty()) continue;
      const sample &first = samples_[t].front(), &last = samples_[t].back();
      row(name_of(static_cast<int>(t)),
          str("descriptors ", first.descriptors, " to ", last.descriptors, " (at most ",
              most_descriptors(t), "), memory ", first.memory >> 10, " to ", last.memory >> 10,
              " MiB (at most ", most_memory(t) >> 10, "), threads ", first.threads, " to ",
              last.threads));
    }
  }
  void print_logs() const { cluster_.print_logs(); }
  void remove_logs() const { folder_.remove(); }

 private:
  static unsigned long long ull(std::uint64_t n) { return n; }
  static void row(const std::string& what, const std::string& text) {
    std::printf("  %-18s %s\n", what.c_str(), text.c_str());
  }
  std::string name_of(int t) const { return cluster_.name_of(t); }
  process& at(int t) { return cluster_.at(t); }
  void start(int t) { cluster_.start(t, {str("--seed=", dice_.next()), "--steps=" + steps_}); }

  /// Fails if a task has ended that was not killed.
  void look_at_tasks() {
    for (int t = 0; t < tasks; ++t)
      if (at(t).running())
        if (const auto end = at(t).ended()) violated(name_of(t), " has ended: ", *end);
  }
  template <class Ready>
  bool wait_until(Ready&& ready) {
    const auto until = clock::now() + patience;
    while (!ready()) {
      if (clock::now() > until) return false;
      look_at_tasks();
      std::this_thread::sleep_for(2ms);
    }
    return true;
  }

  /// Of a client, on either parameter server. Repeated where a connection was lost.
  template <class F>
  void in_session(F&& f) {
    graph g;
    auto in = as_default(g);
    std::vector<worker_variables> own;
    for (int w = 0; w < workers; ++w) own.emplace_back(w);
    const auto all = common_variables();
    std::string why;
    const bool done = wait_until([&] {
      try {
        session s(cluster_.target(static_cast<int>(dice_.below(servers))),
                  {.timeout = patience, .connect_timeout = 5s});
        f(s);
        return true;
      } catch (const error& e) {
        why = e.what();
        if (e.code() != errc::unavailable && e.code() != errc::deadline_exceeded) throw;
        return false;
      }
    });
    if (!done) violated("the parameter servers cannot be read: ", why);
  }

  // Disturbances.

  void later(clock::duration after, std::function<void()> f) {
    timers_.emplace(clock::now() + after, std::move(f));
  }
  void run_timers(clock::time_point until) {
    while (!timers_.empty() && timers_.begin()->first <= until) {
      auto f = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      f();
    }
  }
  std::chrono::milliseconds some_time(std::size_t least, std::size_t most) {
    return std::chrono::milliseconds(least + dice_.below(most - least));
  }

  void disturb(clock::time_point end) {
    for (auto next = clock::now(); clock::now() < end;) {
      run_timers(clock::now());
      look_at_tasks();
      if (clock::now() >= next) {
        disturb_once();
        next = clock::now() + some_time(20, 250);
      }
      std::this_thread::sleep_for(5ms);
    }
  }
  void disturb_once() {
    switch (dice_.below(10)) {
      case 0:
      case 1:
        return kill_worker();
      case 2:
        return stop(servers + static_cast<int>(dice_.below(workers)), "workers");
      case 3:
        return stop(static_cast<int>(dice_.below(servers)), "servers");
      default: {
        const auto h = static_cast<harm>(dice_.below(harm_names.size()));
        if (cluster_.relay().inflict(h, some_time(10, 1'000), dice_))
          ++done_[harm_names[static_cast<std::size_t>(h)]];
      }
    }
  }
  void kill_worker() {
    const int t = servers + 1 + static_cast<int>(dice_.below(workers - 1));
    if (!at(t).running() || dead_ == dead_at_most) return;
    cluster_.kill(t);
    ++dead_;
    ++done_["killed"];
    later(some_time(1, 1'500), [this, t] {
      start(t);
      --dead_;
    });
  }
  void stop(int t, const char* kind) {
    if (!at(t).running()) return;
    at(t).signal(SIGSTOP);
    ++done_[kind];
    // If it was killed and started again in the meantime, it does not mind.
    later(some_time(10, 1'000), [this, t] { at(t).signal(SIGCONT); });
  }
  /// Everything runs, and everything is passed on.
  void calm() {
    run_timers(clock::time_point::max());
    cluster_.relay().heal();
  }

  // Pauses.

  void pause() {
    board_.pause = ++pauses_;
    for (std::size_t w = 0; w < workers; ++w)
      if (!wait_until([&] { return board_.of_worker[w].paused == pauses_; }))
        violated("worker ", w, " hangs: it does not come to the end of a step");
  }
  void resume() { board_.pause = 0; }

  void check_counter(const std::string& name, std::int64_t value, std::uint64_t acknowledged,
                     std::uint64_t tried) {
    const auto v = static_cast<std::uint64_t>(value);
    if (v < acknowledged || v > tried)
      violated(name, " is ", value, ", with ", acknowledged, " steps acknowledged and ", tried,
               " tried");
    ++counters_checked_;
  }
  void check_counters() {
    std::vector<std::int64_t> own, all;
    std::vector<std::pair<float, float>> elements;  // least and greatest
    in_session([&](session& s) {
      graph& g = current_graph();
      own.clear(), all.clear(), elements.clear();
      for (int w = 0; w < workers; ++w) {
        for (int p = 0; p < servers; ++p)
          own.push_back(s.run(variable<std::int64_t>(g.find_variable(str("own_", w, "_", p)))));
        const auto e = s.run(variable<float, large>(g.find_variable(str("elements_", w))));
        const auto [least, most] = std::minmax_element(e.begin(), e.end());
        elements.emplace_back(*least, *most);
      }
      for (int p = 0; p < servers; ++p)
        all.push_back(s.run(variable<std::int64_t>(g.find_variable(str("all_", p)))));
    });
    std::array<std::array<std::uint64_t, 2>, servers> sums{};
    for (std::size_t w = 0; w < workers; ++w) {
      const worker_board& b = board_.of_worker[w];
      for (std::size_t p = 0; p < servers; ++p) {
        check_counter(str("own_", w, "_", p), own[w * servers + p], b.own[p].acknowledged,
                      b.own[p].tried);
        sums[p][0] += b.all[p].acknowledged;
        sums[p][1] += b.all[p].tried;
      }
      if (elements[w].first != elements[w].second)
        violated("elements_", w, " was incremented in part: its elements are from ",
                 elements[w].first, " to ", elements[w].second);
      check_counter(str("elements_", w), static_cast<std::int64_t>(elements[w].first),
                    b.elements.acknowledged, b.elements.tried);
    }
    for (std::size_t p = 0; p < servers; ++p)
      check_counter(str("all_", p), all[p], sums[p][0], sums[p][1]);
  }

  sample observe(int t) {
    return {at(t).descriptors(), at(t).status("VmRSS"), at(t).status("Threads")};
  }
  std::uint64_t most_descriptors(std::size_t t) const {
    return at_first_[t].descriptors + more_descriptors;
  }
  std::uint64_t most_memory(std::size_t t) const {
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < (samples_[t].size() + 3) / 4; ++i)
      most = std::max(most, samples_[t][i].memory);
    return most + more_memory;
  }
  /// Takes a sample once connections that have ended are gone.
  void settle() {
    for (std::size_t t = 0; t < samples_.size(); ++t) {
      sample now;
      const bool settled = wait_until([&] {
        now = observe(static_cast<int>(t));
        return now.descriptors <= most_descriptors(t);
      });
      if (!settled)
        violated(name_of(static_cast<int>(t)), " has ", now.descriptors, " descriptors, more than ",
                 most_descriptors(t));
      samples_[t].push_back(now);
    }
  }
  /// One sample in the last quarter is enough: what leaks is in all of them.
  void check_memory() const {
    for (std::size_t t = 0; t < samples_.size(); ++t) {
      std::uint64_t least = UINT64_MAX;
      for (std::size_t i = samples_[t].size() * 3 / 4; i < samples_[t].size(); ++i)
        least = std::min(least, samples_[t][i].memory);
      if (least > most_memory(t))
        violated(name_of(static_cast<int>(t)), " has grown to ", least, " KiB, more than ",
                 most_memory(t));
    }
  }

  void finish() {
    board_.stop = true;
    resume();
    const auto until = clock::now() + patience;
    for (int t = tasks; t-- > 0;) {
      std::optional<std::string> end;
      while (!(end = at(t).ended()) && clock::now() < until) std::this_thread::sleep_for(2ms);
      if (!end) violated(name_of(t), " does not end");
      if (*end != "exit code 0") violated(name_of(t), " has ended: ", *end);
    }
  }

  const std::uint64_t seed_;
  const std::string steps_;
  testing::dice dice_;
  const clock::duration length_;
  const scratch folder_;
  const int shared_;
  board& board_;
  job_cluster cluster_;  ///< parameter servers first
  std::multimap<clock::time_point, std::function<void()>> timers_;
  int dead_ = 0;
  std::uint32_t pauses_ = 0;
  std::uint64_t counters_checked_ = 0;
  std::map<std::string, int> done_ = [] {
    std::map<std::string, int> m{{"killed", 0}, {"workers", 0}, {"servers", 0}};
    for (const char* name : harm_names) m[name] = 0;
    return m;
  }();
  clock::time_point began_;
  std::vector<sample> at_first_;                                        ///< as samples_
  std::vector<std::vector<sample>> samples_{std::size_t{servers} + 1};  ///< and worker 0
};

int run(double minutes, std::uint64_t seed, const std::string& steps) {
  driver d(minutes, seed, steps);
  std::string wrong;
  try {
    d.run();
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  d.print_table();
  if (!wrong.empty()) {
    d.print_logs();
    std::printf("FAILED: %s\n", wrong.c_str());
    return 1;
  }
  d.remove_logs();
  std::printf("passed\n");
  return 0;
}

}  // namespace
}  // namespace soak

int main(int argc, char** argv) {
  if (argc > 1 && std::strncmp(argv[1], "--job_name", 10) == 0) return soak::run_task(argc, argv);
  ::setenv("DEFT_LOCAL_SOCKETS", "0", 0);  // unless asked for: they pass by the relay
  double minutes = 1;
  unsigned long long seed = 1;
  std::string steps = "all", scenario = "steps";
  bool understood = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    char* rest = argv[i + 1];
    if (flag == "--minutes")
      minutes = std::strtod(argv[i + 1], &rest);
    else if (flag == "--seed")
      seed = std::strtoull(argv[i + 1], &rest, 10);
    else if (flag == "--steps")
      steps = std::exchange(rest, rest + std::strlen(rest));
    else if (flag == "--scenario")
      scenario = std::exchange(rest, rest + std::strlen(rest));
    understood = understood && rest != argv[i + 1] && *rest == 0;
  }
  const bool known = scenario == "steps" || scenario == "cuts" || scenario == "jobs";
  if (!understood || !known || !(minutes > 0) || (steps != "all" && steps != "direct")) {
    std::fprintf(stderr,
                 "usage: scripts/soak [--scenario steps|cuts|jobs] [--transport tcp|tls|local] "
                 "[--minutes N] [--seed S] [--steps all|direct]\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    if (scenario == "cuts") return soak::run_cuts(minutes, seed);
    if (scenario == "jobs") return soak::run_jobs(minutes, seed);
    return soak::run(minutes, seed, steps);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "soak: %s\n", e.what());
    return 1;
  }
}
