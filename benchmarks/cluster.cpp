// SPDX-License-Identifier: Apache-2.0
// benchmarks/cluster.cpp: steps and tensors between processes, against bare blocking sockets.
//
//     this process ──── session ──── worker 0 ──── tensors ──── worker 1
//          └─────────── bare socket ──── the yardstick's process
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <deft/deft.hpp>
#include <optional>

#include "bare.hpp"
#include "bench.hpp"

namespace {

using namespace deft;

constexpr std::int64_t columns = 1024, rows = 32 * 1024;
constexpr std::int64_t bulk = rows * columns * 4;
constexpr const char* ping_pong = "bare ping-pong";
constexpr const char* bare_socket = "bare socket";

/// Processes that end with this one. Made before there are threads.
class processes {
 public:
  template <class F>
  void start(F f) {
    pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      f();
      _exit(0);
    }
    pids_.push_back(pid);
  }
  ~processes() {
    for (auto pid : pids_) kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
  }

 private:
  std::vector<pid_t> pids_;
};

struct far_side {
  processes children;
  cluster_spec cluster;
  std::string bare;

  far_side() {
    int sockets[] = {listen_socket("localhost:0"), listen_socket("localhost:0"),
                     listen_socket("localhost:0")};
    bare = address_of_socket(sockets[2]);
    cluster = {{"worker", {address_of_socket(sockets[0]), address_of_socket(sockets[1])}}};
    for (int task : {0, 1})
      children.start([&] { server(cluster, "worker", task, {.listen_fd = sockets[task]}).join(); });
    children.start([&] { bench::serve_bare(sockets[2], bulk); });
    for (int fd : sockets) close(fd);
  }
  std::string target() const { return "deft://" + cluster.address("worker", 0); }
};

std::string worker(int task) { return str("/job:worker/task:", task); }

/// Turns on a connection of their own, so that the yardstick's process sleeps between them.
bench::measure bare_turn(const far_side& far, bench::request r, int calls) {
  return [&far, r, calls] {
    bench::bare_client c(far.bare, std::max(r.more, r.answer));
    c.call(r);
    return bench::seconds_of([&] { c.call(r); }, calls);
  };
}

void small_steps(const far_side& far) {
  session s(far.target());
  std::optional<variable<float>> v[2];
  for (int task : {0, 1}) {
    auto scope = on(device(worker(task)));
    v[task].emplace(str("v", task), zeros());
  }
  s.run(initialize_all());
  const bench::request ping{0, sizeof(bench::request)};
  {
    auto there = on(device(worker(0)));
    auto step = s.prepare(*v[0] + 1.f);
    bench::time_row(
        "step on a remote task, scalar fetched",
        bench::in_turns(bench::timed([&] { bench::keep(step()); }), bare_turn(far, ping, 200)),
        ping_pong, bench::at_most(1.25));
  }
  constexpr int hops = 100;
  tensor<float> end = *v[0];
  for (int i = 1; i <= hops; ++i) {
    auto there = on(device(worker(i % 2)));
    end = end + *v[i % 2];
  }
  auto step = s.prepare(end);
  auto turn = bench::timed([&] { bench::keep(step()); });
  bench::time_row("chain of 100 hops between two tasks, a hop",
                  bench::in_turns([&] { return turn() / hops; }, bare_turn(far, ping, 200)),
                  ping_pong, bench::at_most(0.9));
}

/// Many small values, and one that is neither small nor large.
void values_between_tasks(const far_side& far) {
  constexpr std::int64_t count = 100, floats = 256, megabyte = 1 << 20;
  session s(far.target(), {.fold = false});
  std::vector<variable<float, floats>> v;
  std::optional<variable<float, megabyte / 4>> large;
  {
    auto there = on(device(worker(1)));
    for (int i = 0; i < count; ++i) v.emplace_back(str("small", i), ones());
    large.emplace("large", ones());
  }
  s.run(initialize_all());
  auto here = on(device(worker(0)));
  tensor<float> sum = constant(0.f);
  std::vector<operation> updates;
  for (auto& x : v) {
    sum = sum + max(x);
    updates.push_back(assign_sub(x, 0.5f * x));
  }
  auto time = [&](const std::string& work, auto&& step, const bench::request& r, double bound) {
    bench::time_row(
        work, bench::in_turns(bench::timed([&] { bench::keep(step()); }), bare_turn(far, r, 100)),
        "bare transfer", bench::at_most(bound));
  };
  const bench::request all{count * floats * 4, sizeof(bench::request)};
  auto pulled = s.prepare(sum);
  time(
      "100 tensors of 1 KB from task to task", [&] { return pulled(); }, all, 1.5);
  auto updated = s.prepare(group(updates));
  time(
      "100 variables of 1 KB pulled and updated",
      [&] {
        updated();
        return 0;
      },
      {all.more, all.more}, 2);
  auto taken = s.prepare(max(*large));
  time(
      "1 MB from task to task", [&] { return taken(); }, {megabyte, sizeof(bench::request)}, 1.3);
}

void bulk_transfers(const far_side& far) {
  session s(far.target());
  using matrix = ndarray<float, rows, columns>;
  std::optional<variable<float, rows, columns>> v[2];
  for (int task : {0, 1}) {
    auto scope = on(device(worker(task)));
    v[task].emplace(str("bulk", task), ones());
  }
  s.run(initialize_all());
  auto there = on(device(worker(0)));
  auto measured = [&](const std::string& work, auto&& f, const bench::request& r) {
    auto o = bench::in_turns([&] { return bench::seconds_of(f, 1); }, bare_turn(far, r, 1), 21);
    bench::speed_row(work, bulk, o, bare_socket, bench::at_least(0.8));
  };

  auto fetch = s.prepare(tensor<float, rows, columns>(*v[0]));
  measured("128 MB fetched", [&] { bench::keep(fetch()); }, {0, bulk});

  // One row is looked at where the tensor has come.
  placeholder<float, rows, columns> x("x");
  auto first = constant({0});
  auto feed = s.prepare(gather(x, first), feeds(x));
  matrix value;
  measured("128 MB fed", [&] { bench::keep(feed(value)); }, {bulk, 1});
  auto across = s.prepare(gather(*v[1], first));
  measured("128 MB from task to task", [&] { bench::keep(across()); }, {bulk, 1});
}

}  // namespace

int main() {
  far_side far;
  small_steps(far);
  values_between_tasks(far);
  bulk_transfers(far);
}
