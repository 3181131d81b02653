// SPDX-License-Identifier: Apache-2.0
// benchmarks/demo.cpp: the demo's steps per second, its start-up time, and an idle server.
//
// bench_demo --demo PROGRAM [--peers ENVIRONMENT]: TensorFlow runs the same job in turns if it is
// installed.
#include <cstdlib>
#include <deft/deft.hpp>
#include <deft/transport/listener.hpp>
#include <sstream>

#include "bench.hpp"
#include "program.hpp"

namespace {

struct job {
  double steps = 0;  ///< per second, of both workers
  double first = 0;  ///< seconds from launch to the first step
};

using bench_clock = std::chrono::steady_clock;

job run_demo(const std::string& path) {
  constexpr long long warm = 500;  // both workers are running
  auto begin = bench_clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(bench_clock::now() - begin).count(); };
  bench::program demo({path, "--steps", "8000"});
  job j;
  long long from = 0, step = 0;
  double since = 0;
  while (demo.more()) {
    std::string line = demo.line();
    auto at = line.find(": step ");
    if (at == line.npos) continue;
    step = std::atoll(line.c_str() + at + 7);
    if (j.first == 0) j.first = seconds();
    if (from == 0 && step > warm) from = step, since = seconds();
    if (step > from && from) j.steps = static_cast<double>(step - from) / (seconds() - since);
  }
  if (demo.wait() != 0) std::fprintf(stderr, "the demo has failed\n");
  return j;
}

/// Steps a second of two workers with `count` parameter servers, from start to end.
double with_servers(const std::string& path, int count) {
  constexpr int steps = 8000;
  std::vector<int> sockets;
  const auto hosts = [&](int n) {
    std::vector<std::string> all;
    for (int i = 0; i < n; ++i) {
      sockets.push_back(deft::ext::listen_socket("localhost:0"));
      all.push_back(deft::ext::address_of_socket(sockets.back()));
    }
    return deft::ext::join(all, ",");
  };
  const std::string ps = "--ps_hosts=" + hosts(count), workers = "--worker_hosts=" + hosts(2);
  for (int fd : sockets) close(fd);
  std::vector<std::unique_ptr<bench::program>> tasks;
  const auto start = [&](const char* job, int n) {
    for (int i = 0; i < n; ++i)
      tasks.push_back(std::make_unique<bench::program>(std::vector<std::string>{
          path, deft::ext::str("--job_name=", job), deft::ext::str("--task_index=", i), ps, workers,
          deft::ext::str("--steps=", steps)}));
  };
  return steps / bench::seconds_of(
                     [&] {
                       start("ps", count);
                       start("worker", 2);
                       for (auto& t : tasks) {
                         while (t->more()) t->line();
                         if (t->wait() != 0) std::fprintf(stderr, "a task has failed\n");
                       }
                     },
                     1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--serve") {
    deft::server s = deft::server::local();
    std::printf("%s\n", s.target().c_str());
    std::fflush(stdout);
    s.join();
    return 0;
  }
  std::string path = bench::flag(argc, argv, "demo");
  std::string python = bench::python_of(bench::flag(argc, argv, "peers"));
  std::unique_ptr<bench::program> tf;
  if (!python.empty())
    tf = std::make_unique<bench::program>(
        std::vector<std::string>{python, std::string(BENCH_PEERS) + "/tf_demo.py"});

  std::vector<double> steps, first, tf_steps, tf_first, tf_memory;
  for (int turn = 0; turn < 3; ++turn) {
    job j = run_demo(path);
    steps.push_back(j.steps);
    first.push_back(j.first);
    double s = 430, f = 2.6, m = 528;  // TensorFlow's published figures
    if (tf && !(std::istringstream(tf->ask()) >> s >> f >> m)) tf.reset();
    tf_steps.push_back(s), tf_first.push_back(f), tf_memory.push_back(m);
  }
  std::vector<double> one, two;
  for (int turn = 0; turn < 3; ++turn) {
    one.push_back(with_servers(path, 1));
    two.push_back(with_servers(path, 2));
  }
  bench::program server({"/proc/self/exe", "--serve"});
  server.line();
  double memory = bench::status_of(server.pid(), "VmRSS") / 1024;

  using bench::median, bench::text;
  std::string name = tf ? " TensorFlow" : " TensorFlow, published";
  bench::row("the demo's steps a second, both workers", text(median(steps), "/s"),
             text(median(tf_steps), "/s") + name, median(steps) / median(tf_steps),
             bench::at_least(3));
  bench::row("the demo's steps a second, 2 parameter servers", text(median(two), "/s"),
             text(median(one), "/s") + " one of them", median(two) / median(one), {});
  bench::row("server at rest, resident", text(memory, "MB"), text(median(tf_memory), "MB") + name,
             memory / median(tf_memory), bench::at_most(15 / median(tf_memory)));
  bench::row("launch to the first step of the demo", text(median(first), "s"),
             text(median(tf_first), "s") + name, median(first) / median(tf_first),
             bench::at_most(0.5 / median(tf_first)));
}
