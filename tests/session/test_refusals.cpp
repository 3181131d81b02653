// SPDX-License-Identifier: Apache-2.0
// Whoever does not belong to a cluster is refused, and told why.
#include <sys/socket.h>

#include <deft/transport/channel_group.hpp>
#include <thread>

#include "sessions.hpp"
#include "transport/wire.hpp"

using namespace deft;
using namespace deft::ext;
using testing::log_lines;
using testing::outcome_of;
using testing::own_graph;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(own_graph, "a task with another list of hosts is refused with what differs") {
  int ps_fd = listen_socket("localhost:0"), worker_fd = listen_socket("localhost:0");
  const std::string ps_host = address_of_socket(ps_fd), host = address_of_socket(worker_fd);
  server of_all({{"ps", {ps_host}}, {"worker", {"elsewhere:1"}}}, "ps", 0, {.listen_fd = ps_fd});
  server stranger({{"ps", {ps_host}}, {"worker", {host}}}, "worker", 0, {.listen_fd = worker_fd});
  tensor<int> x;
  if (auto there = on(device("/job:ps/task:0"))) x = identity(constant(1));
  session s(stranger.target(), {.fold = false});
  const auto o = outcome_of([&] { s.run(x); });
  CAPTURE(o);
  CHECK(o.code == errc::failed_precondition);
  CHECK(
      o.says(str("it was started with /job:worker/task:0 at elsewhere:1, and the caller with "
                 "/job:worker/task:0 at ",
                 host)));
}

TEST_CASE_FIXTURE(own_graph,
                  "a second process with the name of a task is refused until the first is gone") {
  int fds[] = {listen_socket("localhost:0"), listen_socket("localhost:0")};
  const cluster_spec spec{{"ps", {address_of_socket(fds[0])}},
                          {"worker", {address_of_socket(fds[1])}}};
  server of_all(spec, "ps", 0, {.listen_fd = fds[0]});
  tensor<int> x;
  if (auto there = on(device("/job:ps/task:0"))) x = identity(constant(7));
  auto first = std::make_unique<server>(spec, "worker", 0, server_options{.listen_fd = fds[1]});
  auto used = std::make_unique<session>(first->target(), session_options{.fold = false});
  CHECK(used->run(x) == 7);
  // As if the task had been started twice: with the same lists of hosts, on another port.
  server second(spec, "worker", 0, {.listen_fd = listen_socket("localhost:0")});
  session s(second.target(), {.fold = false, .connect_timeout = 300ms});
  testing::log_lines lines;
  const auto o = outcome_of([&] { s.run(x); });
  CAPTURE(o);
  CHECK(join(lines.take(), "\n").find("another process is connected") != std::string::npos);
  CHECK(o.code == errc::unavailable);
  CHECK(o.says(
      "another process is connected to /job:ps/replica:0/task:0 as /job:worker/replica:0/task:0"));
  CHECK(used->run(x) == 7);
  used.reset();
  first.reset();
  testing::log_lines later(logging::level::info);
  session after(second.target(), {.fold = false});
  CHECK(after.run(x) == 7);
  const auto said = join(later.take(), "\n");
  CAPTURE(said);
  CHECK(said.find("takes the place of a former process") != std::string::npos);
}

TEST_CASE("garbage on the port does no harm") {
  local_cluster c{{"worker", 2}};
  graph mine;
  auto in = as_default(mine);
  tensor<int> x;
  if (auto there = on(device("/job:worker/task:1"))) x = identity(constant(7));
  session s(c.target("worker", 0), {.fold = false});
  CHECK(s.run(x) == 7);
  log_lines log;
  std::vector<std::string> garbage{"GET / HTTP/1.1\r\n\r\n", std::string(100'000, '\xff'),
                                   std::string("DEFT") + std::string(200, '\0'), "D", ""};
  for (const auto& text : garbage) {
    testing::bare_socket caller(c.spec().address("worker", 1));
    caller.write(text);
    ::shutdown(caller.handle(), SHUT_WR);
    caller.read_all();
    CHECK(s.run(x) == 7);
  }
  while (log.take().empty()) std::this_thread::yield();  // the refusal is logged
}

TEST_CASE("a wrong secret is refused with a message") {
  local_cluster c({{"worker", 1}}, {.credentials = {.secret = "right"}});
  channel_options mine{{"client", 0, {}, credentials{.secret = "wrong"}.or_of_environment()}, {}};
  channel_group h(mine);
  auto o = outcome_of([&] { h.connect(c.spec().address("worker", 0), deadline_in(5s)); });
  CAPTURE(o);
  CHECK(o.code == errc::unauthenticated);
  CHECK(o.says("secret"));
  channel_options none{{"client", 0, {}, credentials::of_environment()}, {}};
  channel_group without(none);
  o = outcome_of([&] { without.connect(c.spec().address("worker", 0), deadline_in(5s)); });
  CAPTURE(o);
  CHECK(o.code == errc::unauthenticated);
}

TEST_CASE("a task of another cluster is refused") {
  local_cluster a{{"ps", 1}, {"worker", 1}};
  cluster_spec wrong{{"ps", {a.spec().address("ps", 0)}}, {"worker", {"localhost:0", "x:1"}}};
  server stranger(wrong, "worker", 0);
  graph mine;
  auto in = as_default(mine);
  tensor<int> x;
  if (auto there = on(device("/job:ps/task:0"))) x = identity(constant(1));
  session s(stranger.target(), {.fold = false});
  auto o = outcome_of([&] { s.run(x); });
  CAPTURE(o);
  CHECK(o.code == errc::failed_precondition);
  CHECK(o.says("cluster"));
}
