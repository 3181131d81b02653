// SPDX-License-Identifier: Apache-2.0
// benchmarks/cluster.cpp: steps and small values between processes on each transport, against bare
// blocking TCP sockets: back to back and paced, and the processor time of both sides together.
#include <optional>
#include <thread>

#include "far_side.hpp"

namespace {

using namespace deft;
using namespace deft::ext;
using namespace std::chrono_literals;
using bench::far_side;
using bench::prepared;
using bench::worker;

constexpr const char* ping_pong = "bare ping-pong";
const bench::request ping{0, sizeof(bench::request)};

/// The goal: a ratio to the yardstick, or a time. TLS must meet it for a few bytes, but not for
/// many, because the yardstick does not encrypt.
struct bound {
  double ratio = 0, seconds = 0;
  bool of_tls = true;
};

/// Prints a row for each transport. The last time is the yardstick's.
void rows(const far_side& far, std::string work, const std::vector<double>& time,
          const char* yardstick, std::optional<bound> b) {
  if (b && b->seconds > 0) {
    work += ", <= " + bench::time_text(b->seconds);
    b->ratio = b->seconds / time.back();
  }
  for (std::size_t i = 0; i < far.clusters.size(); ++i) {
    const std::string& transport = far.clusters[i].transport;
    const bool is_asked = b && (b->of_tls || transport != "TLS");
    bench::time_row(work + ", " + transport, {time[i], time.back()}, yardstick,
                    is_asked ? std::optional(bench::at_most(b->ratio)) : std::nullopt);
  }
}

/// Calls that start `apart` from each other, or back to back.
struct pace {
  const char* name;
  std::chrono::microseconds apart;
  int calls, turns;
};
constexpr pace back_to_back{"", 0us, 300, 21}, every_tenth{", every 0.1 ms", 100us, 500, 11},
    every_ms{", every 1 ms", 1ms, 100, 9}, every_20_ms{", every 20 ms", 20ms, 20, 5};

/// The cost of a call: time until its answer, and processor time of all processes involved.
struct cost {
  double time, processor;
};

/// The median time, and the mean processor time, including that of sleeping between calls.
template <class F>
cost paced(const pace& p, const std::vector<pid_t>& far, F f) {
  auto processor = [&] {
    double t = bench::processor_seconds(0);
    for (auto pid : far) t += bench::processor_seconds(pid);
    return t;
  };
  f();  // wakes up threads
  std::vector<double> times;
  const double before = processor();
  auto next = std::chrono::steady_clock::now();
  for (int i = 0; i < p.calls; ++i) {
    if (p.apart > 0us) {
      next = std::max(next + p.apart, std::chrono::steady_clock::now());
      std::this_thread::sleep_until(next);
    }
    times.push_back(bench::seconds_of(f, 1));
  }
  return {bench::median(times), (processor() - before) / p.calls};
}

/// The costs of steps on each transport; the last are those of ping-pongs.
struct costs {
  std::vector<double> time, processor;
};
template <class Step>
costs in_turns(const far_side& far, const pace& p, const std::vector<Step>& steps) {
  std::vector<std::vector<double>> processor(steps.size() + 1);
  std::vector<bench::measure> all;
  for (std::size_t i = 0; i < steps.size(); ++i)
    all.push_back([&, i] {
      const cost c = paced(p, far.clusters[i].tasks, [&] { bench::keep(steps[i]()); });
      processor[i].push_back(c.processor);
      return c.time;
    });
  all.push_back([&] {
    bench::bare_client client(far.bare, ping.answer);
    const cost c = paced(p, {far.bare_process}, [&] { client.call(ping); });
    processor.back().push_back(c.processor);
    return c.time;
  });
  costs c{bench::in_turns(all, p.turns), {}};
  for (auto& turns : processor) c.processor.push_back(bench::median(std::move(turns)));
  return c;
}

/// The times of steps on each transport; the last is that of the yardstick.
template <class Step>
std::vector<double> in_turns(const std::vector<Step>& steps, const bench::measure& yardstick) {
  std::vector<bench::measure> all;
  for (auto& step : steps) all.push_back(bench::timed([&step] { step(); }));
  all.push_back(yardstick);
  return bench::in_turns(all, 41);
}

void small_steps(const far_side& far) {
  auto s = far.sessions();
  std::optional<variable<float>> v[2];
  for (int task : {0, 1}) {
    auto scope = on(device(worker(task)));
    v[task].emplace(str("v", task), zeros());
  }
  bench::initialize(s);
  {
    auto there = on(device(worker(0)));
    auto measured = [&](const std::string& work, const pace& p, const auto& steps, bound b) {
      const costs c = in_turns(far, p, steps);
      rows(far, work + p.name, c.time, ping_pong, b);
      rows(far, work + p.name + ", CPU time", c.processor, ping_pong, {});
    };
    const auto one = prepared(s, *v[0] + 1.f);
    measured("step on a remote task", back_to_back, one, {.ratio = 1.25});
    for (const auto& p : {every_tenth, every_ms, every_20_ms})
      measured("step on a remote task", p, one, {.ratio = 1.2});
    // Worker 0 computes with a scalar of worker 1.
    const auto two = prepared(s, *v[1] + 1.f);
    measured("step on two tasks", back_to_back, two, {.seconds = 20e-6});
    measured("step on two tasks", every_ms, two, {.ratio = 2.2});
    // The master, worker 0, has no part in it.
    const auto elsewhere = on(device(worker(1)), [&] { return prepared(s, *v[1] + 1.f); });
    measured("step on a task other than the master's", every_ms, elsewhere, {.ratio = 2.2});
  }
  constexpr int hops = 100;
  tensor<float> end = *v[0];
  for (int i = 1; i <= hops; ++i) {
    auto there = on(device(worker(i % 2)));
    end = end + *v[i % 2];
  }
  auto time = in_turns(prepared(s, end), far.bare_turn(ping, 200));
  for (std::size_t i = 0; i < s.size(); ++i) time[i] /= hops;
  rows(far, "chain of 100 hops between two tasks, a hop", time, ping_pong, bound{.ratio = 0.9});
}

/// Many small values, and one of medium size.
void values_between_tasks(const far_side& far) {
  constexpr std::int64_t count = 100, floats = 256, megabyte = 1 << 20;
  auto s = far.sessions({.fold = false});
  std::vector<variable<float, floats>> v;
  std::optional<variable<float, megabyte / 4>> large;
  {
    auto there = on(device(worker(1)));
    for (int i = 0; i < count; ++i) v.emplace_back(str("small", i), ones());
    large.emplace("large", ones());
  }
  bench::initialize(s);
  auto here = on(device(worker(0)));
  tensor<float> sum = constant(0.f);
  std::vector<operation> updates;
  for (auto& x : v) {
    sum = sum + max(x);
    updates.push_back(assign_sub(x, 1e-6f * x));  // far from subnormal numbers, which are slow
  }
  auto measured = [&](const std::string& work, const auto& steps, const bench::request& r,
                      bound b) {
    b.of_tls = false;
    rows(far, work, in_turns(steps, far.bare_turn(r, 100)), "bare transfer", b);
  };
  constexpr std::int64_t all = count * floats * 4;
  measured("100 tensors of 1 KB from task to task", prepared(s, sum), {all, ping.answer},
           {.ratio = 1.5});
  measured("100 variables of 1 KB read, updated", prepared(s, group(updates)), {all, all},
           {.seconds = 150e-6});
  measured("1 MB from task to task", prepared(s, max(*large)), {megabyte, ping.answer},
           {.ratio = 1.3});
}

/// What it costs that two tasks hold the variables.
void second_holder(const far_side& far) {
  constexpr int count = 20;
  auto s = far.sessions({.fold = false});
  auto updates_of = [](int holders) {
    std::vector<operation> updates;
    for (int i = 0; i < count; ++i) {
      const auto v = on(device(worker(1 + i % holders)),
                        [&] { return variable<float, 256>(str("held", holders, "_", i), ones()); });
      auto here = on(device(worker(0)));
      updates.push_back(assign_sub(v, 1e-6f * v));
    }
    return group(updates);
  };
  const operation one = updates_of(1), two = updates_of(2);
  bench::initialize(s);
  const auto by_one = prepared(s, one), by_two = prepared(s, two);
  for (std::size_t i = 0; i < s.size(); ++i) {
    const auto time = bench::in_turns(
        {bench::timed([&] { by_two[i](); }), bench::timed([&] { by_one[i](); })}, 41);
    bench::time_row("20 variables of 1 KB on two tasks, updated, " + far.clusters[i].transport,
                    {time[0], time[1]}, "on one task", bench::at_most(1.29));
  }
}

/// The time of a plan of many nodes on a remote task, minus its time in this process.
void many_nodes(const far_side& far) {
  constexpr int nodes = 2000;
  constexpr double goal = 15e-6;
  const session_options plain{.fold = false, .fuse = false, .intra_op_threads = 1};
  auto s = far.sessions(plain);
  session here(plain);
  variable<float> v("v", ones());
  tensor<float> end = v;
  for (int i = 0; i < nodes; ++i) end = end + v;
  bench::initialize(s);
  here.run(initialize_all());
  const auto near = here.prepare(end);
  const auto time = in_turns(prepared(s, end), bench::timed([&] { near(); }));
  for (std::size_t i = 0; i < s.size(); ++i) {
    const double more = time[i] - time.back();
    bench::row("2,000 nodes, remote less local, " + far.clusters[i].transport,
               bench::time_text(more), bench::time_text(goal) + ", the goal", more / goal,
               bench::at_most(1));
  }
}

}  // namespace

int main() {
  far_side far(1 << 20);
  // Makes this thread's sleeps end on time. Other threads, started earlier, keep the default.
  prctl(PR_SET_TIMERSLACK, 1);
  small_steps(far);
  values_between_tasks(far);
  second_holder(far);
  many_nodes(far);
}
