// SPDX-License-Identifier: Apache-2.0
// benchmarks/crowd.cpp: a server with many peers: idle connections, and workers that all push to
// one parameter server. The server is a process of its own, and so are the idle callers.
#include <sys/resource.h>

#include <deft/core/thread.hpp>
#include <deft/transport/channel_group.hpp>
#include <thread>

#include "far_side.hpp"
#include "program.hpp"

namespace {

using namespace deft;
using namespace deft::ext;

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

/// A parameter server in a process of its own. Its workers are to be started by this process.
struct far_server {
  far_server(bench::processes& children, int workers) {
    const int own = listen_socket("localhost:0");
    address = address_of_socket(own);
    std::vector<std::string> addresses;
    for (int i = 0; i < workers; ++i)
      addresses.push_back(address_of_socket(sockets.emplace_back(listen_socket("localhost:0"))));
    spec = {{"ps", {address}}, {"worker", addresses}};
    pid = children.start([&] {
      for (int fd : sockets) close(fd);
      server(spec, "ps", 0, {.listen_fd = own}).join();
    });
    close(own);
  }
  std::string address;
  cluster_spec spec;
  std::vector<int> sockets;
  pid_t pid = 0;

  double kilobytes(const char* what) const { return bench::status_of(pid, what); }
  auto descriptors() const {
    const std::filesystem::directory_iterator all(str("/proc/", pid, "/fd"));
    return std::distance(begin(all), end(all));
  }
  /// The number of threads that serve, once those that were needed for a moment have ended.
  double threads_at_rest(double most) const {
    const auto now = [&] { return bench::status_of(pid, "Threads") - 1; };  // but the main thread
    for (int tenths = 0; tenths < 150 && now() > most; ++tenths)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return now();
  }
};

void idle(const far_server& far, int count) {
  graph own;
  auto in_own = as_default(own);
  placeholder<float> x("x");
  auto y = x + 1.f;
  session s("deft://" + far.address);
  auto step = s.prepare(y, feeds(x));
  const bench::measure turn = [&] {
    return bench::seconds_of([&] { bench::keep(step(1.f)); }, 2'000);
  };
  turn();
  idle_callers callers(far.address);
  const double most = 2 + usable_processors();
  std::vector<double> alone, beside;
  double memory = 0, threads = 0;
  for (int i = 0; i < 5; ++i) {
    alone.push_back(turn());
    const double before = far.kilobytes("VmRSS");
    const auto held = far.descriptors();
    callers.connect(count);
    if (i == 0) {
      memory = (far.kilobytes("VmRSS") - before) / count;
      threads = far.threads_at_rest(most);
    }
    beside.push_back(turn());
    callers.connect(0);
    while (far.descriptors() > held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::string work = str(count, " idle connections: ");
  at_most_row(work + "memory of the server for each", memory, 20, "KB");
  at_most_row(work + "threads of the server", threads, most, "");
  bench::time_row(work + "a step beside them", {bench::median(beside), bench::median(alone)},
                  "without them", bench::at_most(1.1));
}

/// The workers of this process push to a parameter server, each in a thread of its own.
void pushing(const far_server& far) {
  constexpr int elements = 1 << 20, pushes = 10;
  graph own;
  auto in_own = as_default(own);
  const auto v = on(device("/job:ps"), [] { return variable<float, elements>("v", zeros()); });
  std::vector<std::unique_ptr<server>> servers;
  std::vector<operation> push;
  for (std::size_t i = 0; i < far.sockets.size(); ++i) {
    const int task = static_cast<int>(i);
    auto there = on(device(bench::worker(task)));
    servers.push_back(std::make_unique<server>(far.spec, "worker", task,
                                               server_options{.listen_fd = far.sockets[i]}));
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
  const std::string work = str(push.size(), " workers push 4 MB each: ");
  const double window = static_cast<double>(credit_window().bytes) / 1e6;
  at_most_row(work + "peak memory of the ps", far.kilobytes("VmHWM") / 1e3,
              static_cast<double>(push.size()) * (window + 4.2), "MB");
  const double most = 2 + usable_processors();
  at_most_row(work + "threads of the ps", far.threads_at_rest(most), most, "");
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
  const far_server at_rest(children, 1), pushed(children, 64);
  for (int count : {2'000, 10'000})
    if (static_cast<rlim_t>(count) + 200 < descriptors.rlim_cur) idle(at_rest, count);
  pushing(pushed);
}
