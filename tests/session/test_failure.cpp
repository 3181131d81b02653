// SPDX-License-Identifier: Apache-2.0
// Failures in a cluster end with a message, never with a hang.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deft/session/wire/codec.hpp>
#include <deft/transport/channel_group.hpp>
#include <deft/transport/listener.hpp>
#include <thread>

#include "environment.hpp"
#include "processes.hpp"
#include "reserved_address.hpp"
#include "sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::is_loss;
using testing::log_lines;
using testing::outcome_of;
using testing::own_graph;
using testing::reserved_address;
using testing::usual_device;
using namespace std::chrono_literals;

namespace {

constexpr const char* ps = "/job:ps/replica:0/task:0";

/// A variable on the ps, read by worker 1, fetched through worker 0.
struct spread {
  variable<float> v = on(device("/job:ps/task:0"), [] { return variable<float>("v", 3.f); });
  tensor<float> far = on(device("/job:worker/task:1"), [this] { return tensor<float>(v * 2.f); });
  tensor<float> sum = on(device("/job:worker/task:0"), [this] { return tensor<float>(far + v); });
};

}  // namespace

TEST_CASE_FIXTURE(own_graph, "a killed ps is unavailable by name, and aborted once it is back") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  spread m;
  session s(c.target("worker", 0));
  s.run(initialize_all());
  CHECK(s.run(m.sum) == 9);
  c.kill("ps", 0);
  for (int i = 0; i < 2; ++i) {
    auto o = outcome_of([&] { s.run(m.sum); });
    CAPTURE(o);
    CHECK(o.code == errc::unavailable);
    CHECK(o.says(ps));
  }
  // Runs that do not need it still work.
  CHECK(s.run(on(device("/job:worker/task:1"), [] { return identity(constant(4)); })) == 4);

  c.restart("ps", 0);
  auto o = outcome_of([&] { s.run(m.sum); });
  CAPTURE(o);
  CHECK(o.code == errc::aborted);
  CHECK(o.says(ps));
  CHECK(
      o.says("has restarted; its variables and this session's plans there are lost: the request "
             "failed"));
  // A new session works, although the other tasks still had links to the old server.
  session t(c.target("worker", 0));
  o = outcome_of([&] { t.run(m.sum); });
  CHECK(o.code == errc::failed_precondition);
  t.run(initialize_all());
  for (int i = 0; i < 5; ++i) CHECK(t.run(m.sum) == 9);
}

TEST_CASE_FIXTURE(own_graph, "a killed worker is unavailable by name, and the variables stay") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  spread m;
  {
    session s(c.target("worker", 0));
    s.run(initialize_all());
    CHECK(s.run(m.sum) == 9);
    c.kill("worker", 1);
    auto o = outcome_of([&] { s.run(m.sum); });
    CAPTURE(o);
    CHECK(o.code == errc::unavailable);
    CHECK(o.says("/job:worker/replica:0/task:1"));
    CHECK(s.run(m.v) == 3);
    c.restart("worker", 1);
    o = outcome_of([&] { s.run(m.sum); });
    CAPTURE(o);
    CHECK(o.code == errc::aborted);
  }
  session s(c.target("worker", 0));
  for (int i = 0; i < 5; ++i) CHECK(s.run(m.sum) == 9);
}

TEST_CASE_FIXTURE(own_graph, "a task that was there when the session was made is not waited for") {
  local_cluster c{{"worker", 2}};
  auto x = on(device("/job:worker/task:1"), [] { return tensor<int>(identity(constant(3))); });
  session first(c.target("worker", 0), {.fold = false});
  CHECK(first.run(x) == 3);
  session second(c.target("worker", 0), {.fold = false, .connect_timeout = 1h});
  c.kill("worker", 1);
  auto o = outcome_of([&] { second.run(x); });
  CAPTURE(o);
  CHECK(o.code == errc::unavailable);
  CHECK(o.says("/job:worker/replica:0/task:1"));
}

TEST_CASE_FIXTURE(own_graph, "a new session does not use a link that has ended unnoticed") {
  local_cluster c{{"worker", 2}};
  auto x = on(device("/job:worker/task:1"), [] { return tensor<int>(identity(constant(3))); });
  for (int i = 0; i < 3; ++i) {
    session s(c.target("worker", 0), {.fold = false});
    CHECK(s.run(x) == 3);
    c.restart("worker", 1);
  }
}

TEST_CASE_FIXTURE(own_graph, "tasks that die during steps end the steps of all threads") {
  for (const char* victim : {"ps", "worker"}) {
    CAPTURE(victim);
    local_cluster c{{"ps", 1}, {"worker", 2}};
    graph mine;
    auto in = as_default(mine);
    spread m;
    session s(c.target("worker", 0));
    s.run(initialize_all());
    std::atomic<int> ran{0}, lost{0}, other{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        auto in = as_default(mine);
        for (;;) {
          auto o = outcome_of([&] { s.run(m.sum); });
          if (o.message.empty()) {
            ++ran;
            continue;
          }
          ++(is_loss(o.code) ? lost : other);
          if (!is_loss(o.code)) MESSAGE(o.message);
          return;
        }
      });
    while (ran < 50) std::this_thread::yield();
    c.kill(victim, victim == std::string("ps") ? 0 : 1);
    for (auto& t : threads) t.join();
    CHECK(lost == 4);
    CHECK(other == 0);
  }
}

TEST_CASE_FIXTURE(own_graph, "killing the master's own task ends its steps, wherever they wait") {
  local_cluster c{{"worker", 2}};
  tensor<float, 256, 256> b;
  tensor<float> here;
  if (auto there = on(device("/job:worker/task:1"))) {
    tensor<float, 256, 256> a = broadcast_to(constant(0.001f), shape<256, 256>);
    b = a;
    for (int i = 0; i < 4000; ++i) b = matmul(b, a);
  }
  if (auto there = on(device("/job:worker/task:0"))) here = sum(b);
  session s(c.target("worker", 0), {.fold = false});  // in this process: called directly
  auto step = s.prepare(here);
  testing::outcome o;
  std::atomic<bool> begun{false};
  std::thread runner([&] {
    begun = true;
    o = outcome_of([&] { step(); });
  });
  while (!begun) std::this_thread::yield();
  c.kill("worker", 0);
  runner.join();
  CAPTURE(o);
  CHECK(o.code == errc::unavailable);
  CHECK(o.says("/job:worker/replica:0/task:0"));
  CHECK(outcome_of([&] { s.run(constant(1) + 1); }).code == errc::unavailable);
}

TEST_CASE_FIXTURE(own_graph, "a client that starts before its servers waits, and names them") {
  const reserved_address at;
  log_lines log;
  auto o = outcome_of([&] { session s("deft://" + at.text, {.connect_timeout = 1200ms}); });
  CAPTURE(o);
  CHECK(o.code == errc::unavailable);
  CHECK(o.reason == error_reason::connect_timeout);
  CHECK(o.message == str("timed out after 1.2 s waiting for ", at.text, ": Connection refused"));
  std::string lines = join(log.take(), "\n");
  INFO(lines);
  CHECK(lines.find("still trying to connect to " + at.text) != lines.npos);
}

TEST_CASE_FIXTURE(own_graph, "a task that never comes up is named after the timeout") {
  const reserved_address nobody;
  cluster_spec spec{{"ps", {nobody.text}}, {"worker", {"localhost:0"}}};
  server worker(spec, "worker", 0);
  tensor<int> x;
  if (auto there = on(device("/job:ps/task:0"))) x = identity(constant(1));
  const std::string address = worker.address();
  // By another name of this host it is not recognized as a server of this process.
  for (const auto& target :
       {worker.target(), "deft://localhost" + address.substr(address.rfind(':'))}) {
    CAPTURE(target);
    session s(target, {.fold = false, .connect_timeout = 100ms});
    const std::string late =
        str(ps, ": timed out after 100 ms waiting for ", nobody.text, ": Connection refused");
    for (const auto& o : {outcome_of([&] { s.run(x); }), outcome_of([&] { s.devices(); }),
                          outcome_of([&] { s.reset(); })}) {
      CAPTURE(o);
      CHECK(o.code == errc::unavailable);
      CHECK(o.reason == error_reason::connect_timeout);
      CHECK(o.message.starts_with(late));
    }
    const auto o = outcome_of([&] { s.run(run_options{.timeout = 50ms}, x); });
    CAPTURE(o);
    CHECK(o.code == errc::deadline_exceeded);
    CHECK(o.says(ps));
    // A graph that needs only the other tasks runs.
    CHECK(s.run(identity(constant(2))) == 2);
  }
}

TEST_CASE_FIXTURE(own_graph, "a master that hangs is named, with the time that was given") {
  testing::child_job job("line_fit", 1, {});
  const auto x = identity(constant(2));
  session s(job.target_of_ps(0), {.fold = false});
  REQUIRE(s.run(x) == 2);
  job.ps(0).signal(SIGSTOP);
  auto o = outcome_of([&] { s.run(run_options{.timeout = 20ms}, x); });
  CAPTURE(o);
  CHECK(o.code == errc::deadline_exceeded);
  CHECK(o.message.starts_with(str("the step timed out after 20 ms waiting for ", ps)));
  cancel_source stop;
  std::thread other([&] { stop.cancel(); });
  o = outcome_of([&] { s.run(run_options{.cancel = stop.token()}, x); });
  other.join();
  CHECK(o.code == errc::cancelled);
  job.ps(0).signal(SIGCONT);
  CHECK(s.run(x) == 2);
}

TEST_CASE_FIXTURE(own_graph, "planning for a task that has died keeps to the limits of the run") {
  local_cluster c{{"worker", 2}};
  auto x = on(device("/job:worker/task:1"), [] { return tensor<int>(identity(constant(1))); });
  const std::string address = c.spec().address("worker", 0);
  // By another name of this host it is not recognized as a server of this process.
  for (const auto& target :
       {c.target("worker", 0), "deft://localhost" + address.substr(address.rfind(':'))}) {
    CAPTURE(target);
    session s(target, {.fold = false, .connect_timeout = 1h});
    s.devices();  // known from now on, although no part was registered there
    c.kill("worker", 1);
    session other_session(target);  // notices that
    auto o = outcome_of([&] { s.run(run_options{.timeout = 50ms}, x); });
    CAPTURE(o);
    CHECK(o.code == errc::deadline_exceeded);
    CHECK(o.says("/job:worker/replica:0/task:1"));
    cancel_source stop;
    std::thread other([&] { stop.cancel(); });
    o = outcome_of([&] { s.run(run_options{.cancel = stop.token()}, x); });
    other.join();
    CHECK(o.code == errc::cancelled);
    c.restart("worker", 1);
  }
}

TEST_CASE_FIXTURE(own_graph,
                  "a session that begins before its second server goes on once it is up") {
  const int fd = listen_socket("localhost:0");
  const reserved_address later;
  cluster_spec spec{{"worker", {address_of_socket(fd), later.text}}};
  server first(spec, "worker", 0, {.listen_fd = fd});
  tensor<int> x;
  if (auto there = on(device("/job:worker/task:1"))) x = identity(constant(7));
  session s(first.target(), {.fold = false});
  int value = 0;
  std::thread client([&] {
    auto in = as_default(g);
    value = s.run(x);
  });
  server second(spec, "worker", 1);
  client.join();
  CHECK(value == 7);
}

namespace {

/// The socket of this process that was connected from port `port`.
int socket_from(int port) {
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        ntohs(own.sin_port) == port)
      return fd;
  }
  return -1;
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "a run succeeds after one that has lost a connection") {
  const testing::environment by_tcp("DEFT_LOCAL_SOCKETS", "0");  // as their ends have addresses
  local_cluster c{{"ps", 1}, {"worker", 2}};
  tensor<float, 4> y;
  variable<float, 4> w = [] {
    auto there = on(device("/job:ps/task:0"));
    return variable<float, 4>("w", zeros());
  }();
  if (auto there = on(device("/job:worker/task:1"))) y = w + 1.f;
  session s(c.target("worker", 0), {.timeout = 60s});
  s.run(initialize_all());
  testing::log_lines lines(logging::level::info);
  const std::string accepted =
      c.spec().address("worker", 1) + " accepted /job:worker/replica:0/task:0 at 127.0.0.1:";
  for (int i = 0; i < 5; ++i) {
    CHECK(s.run(y) == ndarray<float, 4>{1, 1, 1, 1});
    // The connection of the master, not that of the ps.
    const std::string said = join(lines.take(), "\n");
    const auto at = said.rfind(accepted);
    REQUIRE(at != std::string::npos);
    const int fd = socket_from(std::stoi(said.substr(at + accepted.size())));
    REQUIRE(fd >= 0);
    ::shutdown(fd, SHUT_RDWR);
    const auto o = outcome_of([&] { s.run(y); });
    CAPTURE(o);
    CHECK((o.code == errc{} || is_loss(o.code)));
  }
  CHECK(s.run(y) == ndarray<float, 4>{1, 1, 1, 1});
}

TEST_CASE_FIXTURE(own_graph,
                  "all tasks that are missing are named, and waited for no longer than asked") {
  const reserved_address missing[2];
  const int fd = listen_socket("localhost:0");
  cluster_spec spec{{"ps", {missing[0].text, missing[1].text}},
                    {"worker", {address_of_socket(fd)}}};
  server here(spec, "worker", 0, {.listen_fd = fd});
  tensor<float> sum = constant(0.f);
  for (int i : {0, 1}) {
    auto there = on(device(str("/job:ps/task:", i)));
    sum = sum + variable<float>(str("v", i), 1.f);
  }
  for (bool remote : {false, true}) {
    CAPTURE(remote);
    // A server of this process is called directly, unless the target has another name of this host.
    const std::string address = here.address();
    const std::string target =
        remote ? "deft://localhost" + address.substr(address.rfind(':')) : here.target();
    session s(target, {.connect_timeout = 10min});
    auto o = outcome_of([&] { s.run(run_options{.timeout = 300ms}, sum); });
    CAPTURE(o);
    CHECK(o.code == errc::deadline_exceeded);
    CHECK(o.says("/job:ps/replica:0/task:0"));
    CHECK(o.says("/job:ps/replica:0/task:1"));
    cancel_source cancel;
    std::thread later([&] { cancel.cancel(); });
    o = outcome_of([&] { s.run(run_options{.cancel = cancel.token()}, sum); });
    later.join();
    CHECK(o.code == errc::cancelled);
    std::thread runner([&] {
      auto in = as_default(g);
      o = outcome_of([&] { s.run(sum); });
    });
    s.close();
    runner.join();
    CHECK((o.code == errc::cancelled || o.code == errc::failed_precondition));
  }
}

TEST_CASE("values for steps that have ended, or never begin, are dropped") {
  local_cluster c{{"worker", 2}};
  graph mine;
  auto in = as_default(mine);
  tensor<int> x;
  if (auto there = on(device("/job:worker/task:1"))) x = identity(constant(7));
  session s(c.target("worker", 0), {.fold = false});
  {
    channel_group h({{"client", 0, {}, credentials::of_environment()}, {}});
    auto to = h.connect(c.spec().address("worker", 1), deadline_in(5s));
    for (std::uint64_t i = 0; i < 2000; ++i) {
      to->post(
          wire::pack(wire::tensors{77 + i % 3, i, {1}, {any_array(dtype::float32, dims{1000})}}));
    }
    to->post(wire::pack(wire::drop_session{77}));
    to->post(wire::pack(wire::cancel_step{78, 1}));
    to->post(wire::pack(wire::cancel_step{79, 123456}));
    CHECK(to->drain(deadline_in(5s)));
  }
  for (int i = 0; i < 5; ++i) CHECK(s.run(x) == 7);
}

TEST_CASE("steps end while their values still arrive") {
  local_cluster c{{"worker", 3}};
  graph mine;
  auto in = as_default(mine);
  placeholder<int> x("x");
  placeholder<float, dyn> big("big");
  tensor<float, dyn> pushed;
  tensor<int> fails;
  tensor<float> sum_of;
  if (auto there = on(device("/job:worker/task:1"))) pushed = big + 1.f;
  if (auto there = on(device("/job:worker/task:2"))) {
    fails = identity(1 / x);
    auto after = control_dependencies(fails);
    sum_of = sum(pushed);
  }
  session s(c.target("worker", 0));
  std::vector<float> values(500'000, 1.f);
  for (int i = 0; i < 20; ++i) {
    auto o = outcome_of([&] { s.run(sum_of, x = 0, big = values); });
    CHECK(o.code == errc::invalid_argument);
    CHECK(o.device == "/job:worker/replica:0/task:2/" + usual_device());
  }
  CHECK(s.run(sum_of, x = 1, big = values) == 1'000'000);
}

TEST_CASE("a server without connections frees the memory kept for the next step") {
  server s = server::local();
  {
    channel_group h({{"client", 0, {}, credentials::of_environment()}, {}});
    auto c = h.connect(s.address(), deadline_in(5s));
    buffer::host(std::size_t{8} << 20).reset();
    CHECK(recycled_host_memory() >= std::size_t{8} << 20);
  }
  while (recycled_host_memory() != 0) std::this_thread::yield();
}
