// SPDX-License-Identifier: Apache-2.0
// benchmarks/scale.cpp: clusters of many tasks, all in this process: a session's first step, a step
// to which each task contributes, and the plan of a large graph.
#include <deft/deft.hpp>
#include <vector>

#include "bench.hpp"

namespace {

using namespace deft;
using namespace deft::ext;

device_spec task(int i) { return device(str("/job:worker/task:", i)); }

void against_goal(const std::string& work, std::vector<double> seconds, double goal) {
  const double time = bench::median(std::move(seconds));
  bench::row(work, bench::time_text(time), bench::time_text(goal) + ", the goal", time / goal,
             bench::at_most(1));
}

/// A session on a fresh cluster with a variable on each task, then steps that read all of them.
void many_tasks(int tasks, int turns) {
  const std::string of = str(" of ", tasks, " tasks");
  std::vector<double> first, step;
  for (int turn = 0; turn < turns; ++turn) {
    graph own;
    auto in_own = as_default(own);
    local_cluster cluster{{"worker", tasks}};
    std::vector<variable<float>> v;
    tensor<float> sum = constant(0.f);
    for (int i = 0; i < tasks; ++i) {
      auto there = on(task(i));
      v.emplace_back(str("v", i), ones());
    }
    {
      auto here = on(task(0));
      for (auto& x : v) sum = sum + x;
    }
    std::optional<session> s;
    first.push_back(bench::seconds_of(
        [&] {
          s.emplace(cluster.target("worker", 0));
          s->run(initialize_all());
        },
        1));
    auto read = s->prepare(sum);
    for (int i = 0; i < 20; ++i) read();
    step.push_back(bench::seconds_of([&] { bench::keep(read()); }, 100) / tasks);
  }
  against_goal("session and first step" + of, std::move(first), tasks * (8e-3 / 64));
  against_goal("scalar from each" + of + ", a task", std::move(step), 6e-6);
}

void large_plan(int tasks, int nodes) {
  std::vector<double> time;
  for (int turn = 0; turn < 3; ++turn) {
    graph own;
    auto in_own = as_default(own);
    local_cluster cluster{{"worker", tasks}};
    placeholder<float> x("x");
    std::vector<tensor<float>> ends(static_cast<std::size_t>(tasks), x);
    for (int i = 0; i < nodes; ++i) {
      const auto at = static_cast<std::size_t>(i % tasks);
      auto there = on(task(i % tasks));
      ends[at] = ends[at] + 1.f;
    }
    auto here = on(task(0));
    tensor<float> sum = constant(0.f);
    for (auto& e : ends) sum = sum + e;
    session s(cluster.target("worker", 0));
    time.push_back(bench::seconds_of([&] { s.run(sum, x = 1.f); }, 1));
  }
  against_goal(str("plan of ", nodes, " nodes on ", tasks, " tasks, and its run"), std::move(time),
               1);
}

}  // namespace

int main() {
  many_tasks(64, 5);
  many_tasks(256, 3);
  large_plan(256, 100'000);
}
