// SPDX-License-Identifier: Apache-2.0
#include <deft/session/cluster/own_address.hpp>
#include <deft/session/server/server.hpp>

#include "session/sessions.hpp"
#include "transport/hosts.hpp"

using namespace deft;
using namespace deft::ext;
using testing::error_of;
using testing::log_lines;

TEST_CASE("a loopback address of a task whose cluster is on several machines is warned of") {
  const testing::known_hosts hosts({{"vm", {"127.0.1.1"}}, {"far", {"10.255.255.1"}}});
  auto warning = [](const std::string& own, const std::string& other, bool others_first = false) {
    log_lines log(logging::level::warning);
    cluster_spec::job ps{"ps", {own}}, worker{"worker", {other}};
    check_addresses(others_first ? cluster_spec{worker, ps} : cluster_spec{ps, worker}, "ps", 0,
                    own);
    const auto lines = log.take();
    return lines.empty() ? "" : lines[0];
  };
  CHECK(warning("vm:2222", "10.255.255.1:2223") ==
        "[server] vm:2222, the address of /job:ps/task:0, is 127.0.1.1 here: other machines, such "
        "as that of /job:worker/task:0 at 10.255.255.1:2223, cannot connect to it; correct its "
        "line in /etc/hosts, or start this task with 0.0.0.0:2222 as its own address");
  for (const char* other : {"far:1", "unknown:1", "[2001:db8::1]:1"})
    for (const char* own : {"vm:2222", "localhost:2222", "127.0.0.1:2222", "[::1]:2222"}) {
      CHECK(warning(own, other) != "");
      CHECK(warning(own, other, true) != "");
    }
  for (const char* own : {"far:2222", "10.255.255.2:2222", "0.0.0.0:2222", "[::]:2222"})
    CHECK(warning(own, "far:1") == "");
  for (const char* other : {"localhost:1", "vm:1", "127.0.0.1:1"})
    CHECK(warning("vm:2222", other) == "");
}

TEST_CASE("the address of all interfaces is a task's own only") {
  for (const char* any : {"0.0.0.0:2222", "[::]:2222"}) {
    const cluster_spec c{{"ps", {any}}, {"worker", {"localhost:0"}}};
    CHECK(error_of([&] { server(c, "worker", 0); }) ==
          str("invalid_argument: [server] /job:ps/task:0 at ", any,
              ": that stands for all interfaces of a task's own machine, and only the task itself "
              "may be started with it; give the address at which others reach it"));
  }
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "tasks that list 0.0.0.0 as their own address train together") {
  const server_options with_secret{.credentials = {.secret = "of this test"}};
  // Ports that are free.
  std::array<std::string, 2> ports;
  for (auto& p : ports) {
    const server probe = server::local();
    p = probe.address().substr(probe.address().rfind(':'));
  }
  const std::string ps = "127.0.0.1" + ports[0], worker = "127.0.0.1" + ports[1];
  server s0(cluster_spec{{"ps", {"0.0.0.0" + ports[0]}}, {"worker", {worker}}}, "ps", 0,
            with_secret);
  server s1(cluster_spec{{"ps", {ps}}, {"worker", {"0.0.0.0" + ports[1]}}}, "worker", 0,
            with_secret);
  auto v = on(device("/job:ps/task:0"), [] { return variable<std::int64_t>("v", 20); });
  for (const std::string& target :
       {s0.target(), s1.target(), "deft://" + worker, "deft://" + worker + "/job:worker/task:0"}) {
    session s(target, {.credentials = {.secret = "of this test"}});
    s.run(initialize_all());
    auto sum = on(device("/job:worker/task:0"), [&] { return v + 1; });
    CHECK(s.run(sum) == 21);
  }
}

TEST_CASE_FIXTURE(testing::own_graph, "a target may name its task, and then no other answers") {
  local_cluster c({{"worker", 2}});
  const std::string at = c.spec().address("worker", 0);
  for (const char* name : {"/job:worker/task:0", "/job:worker/replica:0/task:0"})
    CHECK(session("deft://" + at + name).run(constant(2) * 3) == 6);
  // In this process, and by a socket: the server's own name for its address is another one.
  const std::string by_socket = "localhost" + at.substr(at.rfind(':'));
  for (const std::string& address : {at, by_socket})
    CHECK(error_of([&] { session("deft://" + address + "/job:worker/task:1"); })
              .ends_with(address + " is /job:worker/replica:0/task:0, not "
                                   "/job:worker/replica:0/task:1"));
  for (const char* name : {"/", "/job:worker", "/task:0", "/job:worker/task:0/cpu:0", "/worker/0",
                           "/job:worker/replica:1/task:0"})
    CHECK(error_of([&] { session("deft://" + at + name); }).find("is not of the form deft://") !=
          std::string::npos);
}
