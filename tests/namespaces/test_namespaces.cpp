// SPDX-License-Identifier: Apache-2.0
// tests/namespaces/test_namespaces.cpp: a cluster of machines, each a network namespace. What
// loopback does not show: addresses that differ, machines that share no local sockets, and links
// that go down. Ends with 77, which ctest takes for skipped, where there can be no such network.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <deft/deft.hpp>

#include "environment.hpp"
#include "network.hpp"
#include "session/processes.hpp"

using namespace deft;
using namespace deft::ext;
using namespace std::chrono_literals;
using testing::child_program;
using testing::network;

namespace {

using arguments = std::vector<std::string>;
using child = std::unique_ptr<child_program>;

constexpr const char* self = "deft_test_namespaces";

/// The task of this program: of a ps and a worker that give each other up after two seconds.
int run_task(const std::string& job, const std::string& ps, const std::string& worker) {
  try {
    server s({{"ps", {ps}}, {"worker", {worker}}}, job, 0, {.heartbeat_timeout = 2s, .away = 1h});
    if (job == "ps") return s.join(), 0;
    auto count = on(device("/job:ps/task:0"), [] { return variable<std::int64_t>("count", 0); });
    session steps(s.target());
    steps.run(initialize_all());
    auto add = count.assign_add(1);
    for (;;)
      if (steps.run(add.value()) == 1) std::puts("runs"), std::fflush(stdout);
  } catch (const error& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}

/// Lines of `p` on standard error up to one with `part`; that one.
std::string complaint_with(child_program& p, const std::string& part) {
  for (;;) {
    const std::string line = p.complaint();
    if (line.empty() || line.find(part) != line.npos) return line;
  }
}
bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("machines train by TCP; tasks of one machine go on by a local socket") {
  int machines[] = {1, 2};  // of the workers
  SUBCASE("each task on a machine of its own") {}
  SUBCASE("a worker on that of the parameter server") { machines[1] = 0; }
  const network n(3);
  const testing::environment talkative("DEFT_LOG", "info"), usual("DEFT_LOCAL_SOCKETS", nullptr);
  const std::string ps_host = network::host(0) + ":2222";
  arguments hosts;
  for (int m : machines) hosts.push_back(network::host(m) + ":2223");
  auto start = [&](int machine, const char* job, int index) {
    return n.on(machine, [&] {
      return std::make_unique<child_program>(
          "line_fit",
          arguments{str("--job_name=", job), str("--task_index=", index), "--ps_hosts=" + ps_host,
                    "--worker_hosts=" + join(hosts, ","), "--steps=10000", "--intra_op_threads=1"});
    });
  };
  const child ps = start(0, "ps", 0);
  const child workers[] = {start(machines[0], "worker", 0), start(machines[1], "worker", 1)};
  for (const child& worker : workers) {
    const std::string said = join(worker->lines(), "\n");
    CAPTURE(said);
    CHECK(contains(said, "w is 3.000"));
    CHECK(worker->wait() == 0);
  }
  ps->lines();
  const std::string said = ps->complaints();
  CHECK(ps->wait() == 0);
  CAPTURE(said);
  for (int w : {0, 1}) {
    const std::string host = network::host(machines[w]);
    const auto at =
        said.find(str(ps_host, " accepted /job:worker/replica:0/task:", w, " at ", host, ":"));
    REQUIRE(at != said.npos);
    CHECK(contains(said.substr(at, said.find('\n', at) - at), " on a local socket") ==
          (machines[w] == 0));
  }
}

TEST_CASE("a task is reached at its second address if packets to the first are dropped") {
  const network n(2);
  const testing::own_hosts hosts("10.77.0.3 two\n10.77.0.1 two\n");
  n.drop(1, "10.77.0.3");
  auto start = [&](int machine, const char* job, const char* ps) {
    return n.on(machine, [&] {
      return std::make_unique<child_program>(self, arguments{job, ps, network::host(1) + ":2222"});
    });
  };
  // The first address is not one of this machine: it listens at all that it has.
  const child ps = start(0, "ps", "0.0.0.0:2222"), worker = start(1, "worker", "two:2222");
  CHECK(worker->line() == "runs");
}

TEST_CASE("a link that goes down is reported by name on both sides") {
  const network n(2);
  const testing::environment talkative("DEFT_LOG", "info");
  auto start = [&](int machine, const char* job) {
    return n.on(machine, [&] {
      return std::make_unique<child_program>(
          self, arguments{job, network::host(0) + ":2222", network::host(1) + ":2222"});
    });
  };
  const child ps = start(0, "ps"), worker = start(1, "worker");
  REQUIRE(worker->line() == "runs");
  n.cut_off(1);
  const std::string of_worker = worker->line();
  CAPTURE(of_worker);
  CHECK(contains(of_worker, "/job:ps/replica:0/task:0 at 10.77.0.1:2222"));
  CHECK(contains(of_worker, "nothing received from it for 2 s"));
  CHECK(worker->wait() == 1);
  const std::string of_ps = complaint_with(*ps, "nothing received from it for 2 s");
  CAPTURE(of_ps);
  CHECK(contains(of_ps, "lost /job:worker/replica:0/task:0 at 10.77.0.2:"));
}

int main(int argc, char** argv) {
  if (argc == 4 && argv[1][0] != '-') return run_task(argv[1], argv[2], argv[3]);
  if (const std::string why = testing::enter_own_network(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  // Tasks that others can reach ask for one.
  setenv("DEFT_SECRET", "of this test", 1);
  for (const char* name : {"DEFT_TLS_CERT", "DEFT_TLS_KEY", "DEFT_TLS_CA"}) unsetenv(name);
  return doctest::Context(argc, argv).run();
}
