// SPDX-License-Identifier: Apache-2.0
// benchmarks/crowd.cpp: a server with many peers: idle connections, and workers that all push to
// one parameter server. The server is a process of its own, and so are the idle callers.
#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "far_side.hpp"
#include "program.hpp"

namespace {

using namespace deft;

/// Prints a figure next to the most that it may be.
void at_most_row(const std::string& work, double n, double most, const char* unit) {
  bench::row(work, bench::text(n, unit), bench::text(most, unit) + ", the goal", n / most,
             bench::at_most(1));
}

/// A process that connects to a server and closes the connections again when it is told to.
class idle_callers {
 public:
  explicit idle_callers(std::string address)
      : process_({"/proc/self/exe", "--callers", std::move(address)}) {}
  void connect(int n) {
    if (process_.ask(str(n)) != "done") std::abort();
  }
  static int run(const std::string& address) {
    channel_group group;
    std::vector<std::shared_ptr<channel>> all;
    for (int n; std::scanf("%d", &n) == 1;) {
      all.clear();
      while (all.size() < static_cast<std::size_t>(n))
        all.push_back(group.connect(address, deadline_in(std::chrono::seconds(60))));
      std::printf("done\n");
      std::fflush(stdout);
    }
    return 0;
  }

 private:
  bench::program process_;
};

/// A server in a process of its own, with a step on it.
struct far_server {
  explicit far_server(bench::processes& children) {
    const int fd = listen_socket("localhost:0");
    address = address_of_socket(fd);
    const cluster_spec spec{{"ps", {address}}, {"worker", {"localhost:1"}}};
    pid = children.start([&] { server(spec, "ps", 0, {.listen_fd = fd}).join(); });
    close(fd);
  }
  std::string address;
  pid_t pid;
};

void idle(far_server& far, int count) {
  graph own;
  auto in_own = as_default(own);
  placeholder<float> x("x");
  auto y = x + 1.f;
  session s("deft://" + far.address);
  auto step = s.prepare(y, feeds(x));
  const bench::measure turn = [&] {
    return bench::seconds_of([&] { bench::keep(step(1.f)); }, 500);
  };
  turn();
  std::vector<double> alone, beside, memory, threads;
  for (int i = 0; i < 7; ++i) {
    const double before = bench::status_of(far.pid, "VmRSS");
    alone.push_back(turn());
    idle_callers callers(far.address);
    callers.connect(count);
    beside.push_back(turn());
    threads.push_back(bench::status_of(far.pid, "Threads"));
    if (i == 0) memory.push_back((bench::status_of(far.pid, "VmRSS") - before) / count);
  }
  const std::string work = str(count, " idle connections: ");
  at_most_row(work + "memory of the server for each", memory[0], 20, "KB");
  at_most_row(work + "threads of the server", bench::median(threads), 2 + usable_processors(), "");
  bench::time_row(work + "a step beside them", {bench::median(beside), bench::median(alone)},
                  "without them", bench::at_most(1.1));
}

/// Workers of this process push to a parameter server, each in a thread of its own.
void pushing(bench::processes& children, int workers) {
  constexpr int elements = 1 << 20, pushes = 10;
  const int fd = listen_socket("localhost:0");
  std::vector<int> sockets;
  std::vector<std::string> addresses;
  for (int i = 0; i < workers; ++i) {
    sockets.push_back(listen_socket("localhost:0"));
    addresses.push_back(address_of_socket(sockets.back()));
  }
  const cluster_spec spec{{"ps", {address_of_socket(fd)}}, {"worker", addresses}};
  const pid_t ps = children.start([&] {
    for (int other : sockets) close(other);
    server(spec, "ps", 0, {.listen_fd = fd}).join();
  });
  close(fd);
  graph own;
  auto in_own = as_default(own);
  const auto v = on(device("/job:ps"), [] { return variable<float, elements>("v", zeros()); });
  std::vector<std::unique_ptr<server>> servers;
  std::vector<operation> push;
  for (int i = 0; i < workers; ++i) {
    auto there = on(device(bench::worker(i)));
    const auto k = static_cast<std::size_t>(i);
    servers.push_back(
        std::make_unique<server>(spec, "worker", i, server_options{.listen_fd = sockets[k]}));
    push.push_back(v.assign_add(random_uniform(shape<elements>, 0, 1)));
  }
  session(servers[0]->target()).run(initialize_all());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < push.size(); ++i)
    threads.emplace_back([&, i] {
      const auto in_graph = as_default(own);
      session s(servers[i]->target(), {.intra_op_threads = 1});
      for (int n = 0; n < pushes; ++n) s.run(push[i]);
    });
  for (auto& t : threads) t.join();
  const std::string work = str(workers, " workers push 4 MB each: ");
  at_most_row(work + "peak memory of the ps", bench::status_of(ps, "VmHWM") / 1024,
              workers * (credit_window().bytes / 1e6 + 4.2), "MB");
  at_most_row(work + "threads of the ps", bench::status_of(ps, "Threads"),
              2 + 2 * usable_processors(), "");
}

}  // namespace

int main(int argc, char** argv) {
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
  if (const std::string address = bench::flag(argc, argv, "callers"); !address.empty())
    return idle_callers::run(address);
  bench::processes children;
  far_server far(children);
  for (int count : {2'000, 10'000})
    if (static_cast<rlim_t>(count) + 200 < descriptors.rlim_cur) idle(far, count);
  pushing(children, 64);
}
