// SPDX-License-Identifier: Apache-2.0
// Clients and tasks in processes of their own.
#include <fcntl.h>

#include <thread>

#include "processes.hpp"
#include "sessions.hpp"

using namespace deft;
using testing::child_program;

namespace {
bool has(const std::vector<std::string>& lines, const std::string& text) {
  return std::ranges::any_of(lines, [&](const auto& l) { return l.find(text) != l.npos; });
}

/// The numbers in lines "…process N trains".
std::vector<int> pids_of(child_program& p, int wanted) {
  std::vector<int> pids;
  while (static_cast<int>(pids.size()) < wanted) {
    std::string l = p.line();
    if (l.empty()) break;
    auto at = l.find("process ");
    if (at != l.npos) pids.push_back(std::stoi(l.substr(at + 8)));
  }
  return pids;
}

/// Waits until a process that is not our child is gone.
void wait_until_gone(int pid) {
  while (::kill(pid, 0) == 0) std::this_thread::yield();
}
}  // namespace

TEST_CASE("a client of another process runs on the cluster, through one of its tasks") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  graph g;
  auto in = as_default(g);
  auto v = on(device("/job:ps/task:0"), [] { return variable<float>("shared", 40.f); });
  session s(c.target("worker", 0));
  s.run(initialize_all());
  child_program first("remote_client", {c.target("worker", 0), "sum"});
  CHECK(first.line() == "4 42 42 on /job:worker/replica:0/task:1/cpu:0, 3 devices");
  CHECK(first.wait() == 0);
  child_program second("remote_client", {c.target("worker", 1), "sum"});
  CHECK(second.line() == "4 44 44 on /job:worker/replica:0/task:1/cpu:0, 3 devices");
  CHECK(second.wait() == 0);
  CHECK(s.run(v) == 44);
}

TEST_CASE("a task that was not compiled with an expression runs its program") {
  local_cluster c{{"worker", 2}};
  child_program p("remote_client", {c.target("worker", 0), "own"});
  program own;
  own.signature = p.line();
  CHECK(own.signature.find("square") != own.signature.npos);
  CHECK(find_fused(own) == nullptr);
  CHECK(p.line() == "4 1 0 on /job:worker/replica:0/task:1/cpu:0");
  CHECK(p.wait() == 0);
}

TEST_CASE("errors reach a client of another process whole") {
  local_cluster c{{"worker", 2}};
  child_program p("remote_client", {c.target("worker", 0), "errors"});
  std::string said = p.line();
  INFO(said);
  CHECK(said.starts_with("invalid_argument|"));
  CHECK(said.find("remote_client.cpp:") != said.npos);
  CHECK(said.ends_with("|/job:worker/replica:0/task:1/cpu:0"));
  CHECK(p.line() == "1");
  CHECK(p.wait() == 0);
}

TEST_CASE("a client of another process cancels, and runs out of time") {
  local_cluster c{{"worker", 2}};
  child_program cancels("remote_client", {c.target("worker", 0), "cancel"});
  CHECK(cancels.line().starts_with("cancelled|"));
  CHECK(cancels.line() == "5");
  child_program late("remote_client", {c.target("worker", 0), "timeout"});
  std::string said = late.line();
  INFO(said);
  CHECK(said.starts_with("deadline_exceeded|"));
  CHECK(said.find("/job:worker/replica:0/task:1") != said.npos);
  CHECK(late.line() == "5");
}

TEST_CASE("a client that dies takes its steps with it, and nothing else") {
  local_cluster c{{"worker", 2}};
  graph g;
  auto in = as_default(g);
  auto x = on(device("/job:worker/task:1"), [] { return tensor<int>(identity(constant(3))); });
  session s(c.target("worker", 0), {.fold = false});
  CHECK(s.run(x) == 3);
  {
    child_program p("remote_client", {c.target("worker", 0), "hang"});
    REQUIRE(p.line() == "running");
    p.signal(SIGKILL);
    p.wait();
  }
  CHECK(s.run(x) == 3);
}

TEST_CASE("a server that dies under a client of another process is named") {
  local_cluster c{{"worker", 2}};
  for (int victim : {1, 0}) {
    child_program p("remote_client", {c.target("worker", 0), "hang"});
    REQUIRE(p.line() == "running");
    c.kill("worker", victim);
    std::string said = p.line();
    INFO(said);
    CHECK(said.starts_with("unavailable|"));
    CHECK(said.find(str("/job:worker/replica:0/task:", victim)) != said.npos);
    CHECK(p.wait() == 1);
    c.restart("worker", victim);
  }
}

TEST_CASE("a ps or a worker that is killed is named by those who need it, and nobody hangs") {
  for (int victim : {0, 1}) {
    CAPTURE(victim);
    // Each task has its own listening socket and no other's: with the process goes its port.
    int sockets[] = {listen_socket("localhost:0"), listen_socket("localhost:0"),
                     listen_socket("localhost:0")};
    const std::string ps = "--ps_hosts=" + address_of_socket(sockets[0]);
    const std::string workers =
        str("--worker_hosts=", address_of_socket(sockets[1]), ",", address_of_socket(sockets[2]));
    for (int fd : sockets) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    std::vector<std::unique_ptr<child_program>> tasks;
    for (int i = 0; i < 3; ++i) {
      ::fcntl(sockets[i], F_SETFD, 0);
      tasks.push_back(std::make_unique<child_program>(
          "line_fit",
          std::vector<std::string>{i ? "--job_name=worker" : "--job_name=ps",
                                   str("--task_index=", i ? i - 1 : 0), ps, workers,
                                   str("--listen_fd=", sockets[i]), "--steps=1000000000"}));
      ::close(sockets[i]);
    }
    for (int i : {1, 2}) REQUIRE(pids_of(*tasks[static_cast<std::size_t>(i)], 1).size() == 1);
    tasks[static_cast<std::size_t>(victim)]->signal(SIGKILL);
    if (victim == 0) {
      for (int i : {1, 2}) {
        auto& worker = *tasks[static_cast<std::size_t>(i)];
        worker.lines();
        const std::string said = worker.complaints();
        INFO(said);
        CHECK(worker.wait() == 1);
        CHECK(said.find("/job:ps/replica:0/task:0") != said.npos);
      }
    } else {
      // Asynchronous training goes on without it.
      session s("deft://" + ps.substr(ps.find('=') + 1));
      graph g;
      auto in = as_default(g);
      auto step = on(device("/job:ps/task:0"), [] { return global_step(); });
      const std::int64_t seen = s.run(step);
      while (s.run(step) <= seen) std::this_thread::yield();
    }
  }
}

TEST_CASE("a job of processes trains, and all of them end") {
  child_program p("line_fit", {"--steps", "300"});
  auto lines = p.lines();
  INFO(join(lines, "\n"));
  CHECK(p.wait() == 0);
  CHECK(has(lines, "/job:ps/task:0 at 127.0.0.1:"));
  CHECK(has(lines, "worker/0: w is 3.000"));
  CHECK(has(lines, "worker/1: w is 3.000"));
}

TEST_CASE("the first task that fails ends the others, and its code is the launcher's") {
  child_program p("line_fit", {"--steps", "1000000000", "--fail", "1"});
  p.lines();
  std::string said = p.complaints();
  INFO(said);
  CHECK(p.wait() == 1);
  CHECK(said.find("as told") != said.npos);
  CHECK(said.find("worker/1 has failed") != said.npos);
}

TEST_CASE("nothing is left running after the launcher is interrupted or killed") {
  for (int number : {SIGINT, SIGTERM, SIGKILL}) {
    CAPTURE(number);
    child_program p("line_fit", {"--steps", "1000000000"});
    auto pids = pids_of(p, 2);
    REQUIRE(pids.size() == 2);
    p.signal(number);
    p.lines();  // until the last of them has closed it
    int code = p.wait();
    if (number != SIGKILL) CHECK(code == 130);
    for (int pid : pids) wait_until_gone(pid);
  }
}

TEST_CASE("a single process of the same binary trains alone") {
  child_program p("line_fit", {"--single", "--steps=100"});
  auto lines = p.lines();
  CHECK(p.wait() == 0);
  CHECK(has(lines, "w is 3.000"));
}
