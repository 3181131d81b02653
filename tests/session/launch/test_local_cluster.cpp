// SPDX-License-Identifier: Apache-2.0
#include <deft/session/launch/local_cluster.hpp>
#include <deft/transport/address.hpp>
#include <thread>

#include "session/sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::log_lines;
using testing::outcome_of;
using testing::own_graph;
using testing::usual_device;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(own_graph, "a graph over two tasks runs in both") {
  local_cluster c{{"worker", 2}};
  tensor<int, 1> x, y1, y2, z;
  if (auto first = on(device("/job:worker/task:0"))) {
    x = constant({2});
    y1 = x + 300;
  }
  if (auto second = on(device("/job:worker/task:1"))) {
    y2 = x - 66;
    z = y1 + y2;
  }
  for (bool fold : {true, false}) {
    session s(c.target("worker", 0), {.fold = fold});
    for (int i = 0; i < 20; ++i) CHECK(s.run(z)(0) == 238);
    auto both = s.run(y1, z, y2);
    CHECK(std::get<0>(both)(0) == 302);
    CHECK(std::get<2>(both)(0) == -64);
    CHECK(s.device_of(z) == "/job:worker/replica:0/task:1/" + usual_device());
  }
  session far(c.target("worker", 1));
  CHECK(far.run(z)(0) == 238);
}

TEST_CASE_FIXTURE(own_graph, "ports are chosen, and the servers know those of each other") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  CHECK(c.spec().tasks("worker") == 2);
  for (auto& [job, addresses] : c.spec().jobs())
    for (auto& a : addresses) CHECK(!a.ends_with(":0"));
  CHECK(c.target("ps", 0) == c.at("ps", 0).target() + "/job:ps/replica:0/task:0");
  CHECK(c.at("ps", 0).name() == "/job:ps/replica:0/task:0");
  session s(c.target("worker", 1));
  CHECK(list_devices(s).size() >= 3);
  CHECK(outcome_of([&] { c.at("ps", 1); }).code == errc::not_found);

  server one = server::local();
  session t(one.target());
  CHECK(t.run(constant(3)) == 3);
  CHECK(t.device_of(constant(3)) == "/job:localhost/replica:0/task:0/" + usual_device());
}

TEST_CASE_FIXTURE(own_graph, "nobody else is given the port of a task that was killed") {
  using boost::asio::ip::tcp;
  local_cluster c{{"ps", 1}, {"worker", 1}};
  boost::asio::io_context context;
  const tcp::endpoint at = detail::resolve(c.spec().address("ps", 0)).front();
  for (int i = 0; i < 2; ++i) {
    c.kill("ps", 0);
    c.kill("ps", 0);  // it has ended already
    tcp::acceptor other(context, at.protocol());
    boost::system::error_code failed;
    other.bind(at, failed);
    CHECK(failed == boost::asio::error::address_in_use);
    c.restart("ps", 0);
    session s(c.target("ps", 0));
    CHECK(s.run(constant(i) + 1) == i + 1);
  }
}

TEST_CASE_FIXTURE(own_graph, "sessions share variables by name, and reset forgets them") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  auto write = [&](graph& mine, float value, int worker) {
    auto in = as_default(mine);
    auto there = on(device("/job:ps/task:0"));
    variable<float> v("shared", value);
    session s(c.target("worker", worker));
    s.run(initialize_all());
  };
  auto read = [&](int worker) {
    graph mine;
    auto in = as_default(mine);
    auto there = on(device("/job:ps/task:0"));
    variable<float> v("shared", 0.f);
    session s(c.target("worker", worker));
    return s.run(v);
  };
  graph a;
  write(a, 5, 0);
  CHECK(read(1) == 5);
  CHECK(read(0) == 5);
  {
    session s(c.target("worker", 1));
    s.reset();
  }
  auto o = outcome_of([&] { read(0); });
  CAPTURE(o);
  CHECK(o.code == errc::failed_precondition);
  CHECK(o.says("shared"));
  CHECK(o.device == "/job:ps/replica:0/task:0/" + usual_device());

  // The task refuses the same name with another shape.
  write(a, 5, 0);
  graph b;
  auto in = as_default(b);
  auto there = on(device("/job:ps/task:0"));
  variable<float, 3> other("shared", zeros());
  session s(c.target("worker", 0));
  o = outcome_of([&] { s.run(other); });
  CAPTURE(o);
  CHECK(o.code == errc::invalid_argument);
  CHECK(o.says("shared"));
}

TEST_CASE_FIXTURE(own_graph, "feeds go to the tasks that need them") {
  local_cluster c{{"worker", 3}};
  placeholder<float, dyn> x("x"), y("y");
  tensor<float, dyn> a, b;
  if (auto there = on(device("/job:worker/task:1"))) a = x * 2.f + y;
  if (auto there = on(device("/job:worker/task:2"))) b = a + y;
  session s(c.target("worker", 0));
  std::vector<float> ones(100'000, 1.f), twos(100'000, 2.f);
  for (int i = 0; i < 5; ++i) {
    auto [va, vb] = s.run(a, b, x = ones, y = ndarray<float, dyn>::view(twos.data(), 100'000));
    CHECK(va(99'999) == 4);
    CHECK(vb(50'000) == 6);
  }
  auto step = s.prepare(b, feeds(x, y));
  CHECK(step(ones, std::vector<float>(100'000, 3.f))(7) == 8);
}

TEST_CASE_FIXTURE(own_graph, "control dependencies hold across tasks") {
  local_cluster c{{"worker", 2}};
  auto v = on(device("/job:worker/task:1"), [] { return variable<int>("v", 0); });
  auto write = v.assign_add(5);
  tensor<int> read;
  {
    auto after = control_dependencies(write);
    auto there = on(device("/job:worker/task:0"));
    read = v + 1;
  }
  session s(c.target("worker", 0));
  s.run(initialize_all());
  CHECK(s.run(read) == 6);
  CHECK(s.run(read) == 11);
}

TEST_CASE_FIXTURE(own_graph, "two tasks push large tensors at each other in one step") {
  local_cluster c{{"worker", 2}};
  constexpr int n = 4'000'000;  // 16 MB, more than a socket holds
  placeholder<float> x("x");
  tensor<float, n> a, b;
  tensor<float> sa, sb;
  if (auto first = on(device("/job:worker/task:0"))) a = broadcast_to(x, shape<n>) + 1.f;
  if (auto second = on(device("/job:worker/task:1"))) b = broadcast_to(x, shape<n>) + 2.f;
  if (auto first = on(device("/job:worker/task:0"))) sa = max(a + b);
  if (auto second = on(device("/job:worker/task:1"))) sb = max(b - a);
  session s(c.target("worker", 0));
  for (int i = 0; i < 3; ++i) {
    auto [va, vb] = s.run(sa, sb, x = static_cast<float>(i));
    CHECK(va == 2.f * static_cast<float>(i) + 3);
    CHECK(vb == 1);
  }
}

TEST_CASE_FIXTURE(own_graph, "a value is sent back and forth many times") {
  local_cluster c{{"worker", 2}};
  placeholder<int> x("x");
  tensor<int> v = x;
  for (int i = 0; i < 50; ++i) {
    auto there = on(device(str("/job:worker/task:", i % 2)));
    v = identity(v + 1);
  }
  log_lines log(logging::level::info);
  session s(c.target("worker", 0));
  for (int i = 0; i < 20; ++i) CHECK(s.run(v, x = i) == i + 50);
  // Values for the master's task are sent on the connection that it opened.
  const auto lines = log.take();
  auto accepted = [&](int task) {
    const auto line = c.spec().address("worker", task) + " accepted";
    return std::ranges::count_if(lines, [&](const auto& l) { return l.starts_with(line); });
  };
  CHECK(accepted(0) == 0);
  CHECK(accepted(1) == 1);
}

TEST_CASE_FIXTURE(own_graph, "literals that vary go to the tasks that need them") {
  local_cluster c{{"worker", 3}};
  placeholder<float, dyn> x("x");
  session s(c.target("worker", 0));
  const ndarray<float, 3> in{1, 2, 3};
  for (int i = 0; i < 20; ++i) {
    const auto k = static_cast<float>(i);
    tensor<float, dyn> y, z;
    if (auto there = on(device("/job:worker/task:1"))) y = x * k + 1.f;
    if (auto there = on(device("/job:worker/task:2"))) z = y - k;
    auto [a, b] = s.run(z, sum(z) * k, x = in);
    CHECK(a == ndarray<float, dyn>{1, k + 1, 2 * k + 1});
    CHECK(b == k * (3 * k + 3));
  }
}

TEST_CASE_FIXTURE(own_graph, "eight threads run steps on one session") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  placeholder<float> x("x");
  auto count = on(device("/job:ps/task:0"), [] { return variable<float>("count", 0.f); });
  tensor<float> y, z;
  if (auto there = on(device("/job:ps/task:0"))) y = x * 2.f;
  auto add = count.assign_add(1.f);
  if (auto there = on(device("/job:worker/task:1"))) z = y + 1.f;
  session s(c.target("worker", 0));
  s.run(initialize_all());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      auto in = as_default(g);
      for (int i = 0; i < 50; ++i) {
        auto k = static_cast<float>(t * 100 + i);
        if (s.run(z, add, x = k) != 2 * k + 1) ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(s.run(count) == 400);
}

TEST_CASE_FIXTURE(own_graph, "a failing node cancels the other parts, and its error is reported") {
  local_cluster c{{"worker", 3}};
  placeholder<int> x("x");
  tensor<int> a, b, sum;
  unsigned line = 0;
  if (auto there = on(device("/job:worker/task:1"))) {
    line = __LINE__ + 1;
    a = name(identity(100 / x), "quotient");
  }
  if (auto there = on(device("/job:worker/task:2"))) b = a + 1;
  if (auto there = on(device("/job:worker/task:0"))) sum = a + b;
  session s(c.target("worker", 0));
  for (int i = 0; i < 10; ++i) {
    auto o = outcome_of([&] { s.run(sum, x = 0); });
    CAPTURE(o);
    CHECK(o.code == errc::invalid_argument);
    CHECK(o.device == "/job:worker/replica:0/task:1/" + usual_device());
    CHECK(!o.node.empty());
    CHECK(o.line == line);
    CHECK(s.run(sum, x = 10) == 21);
  }
}

TEST_CASE_FIXTURE(own_graph, "a step that times out names the missing tasks") {
  local_cluster c{{"worker", 2}};
  tensor<float, 256, 256> b;
  if (auto there = on(device("/job:worker/task:1"))) {
    tensor<float, 256, 256> a = broadcast_to(constant(0.001f), shape<256, 256>);
    b = a;
    for (int i = 0; i < 4000; ++i) b = matmul(b, a);
  }
  session s(c.target("worker", 0), {.fold = false});
  auto o = outcome_of([&] { s.run(run_options{.timeout = 200ms}, b); });
  CAPTURE(o);
  CHECK(o.code == errc::deadline_exceeded);
  CHECK(o.says("timed out after "));
  CHECK(o.says("waiting for /job:worker/replica:0/task:1"));
  cancel_source cancel;
  std::thread runner([&] {
    auto in = as_default(g);
    o = outcome_of([&] { s.run(run_options{.cancel = cancel.token()}, b); });
  });
  cancel.cancel();
  runner.join();
  CAPTURE(o);
  CHECK(o.code == errc::cancelled);
}

TEST_CASE_FIXTURE(own_graph, "a timeout ends the part on the other task") {
  local_cluster c{{"worker", 2}};
  tensor<float> there, sum;
  if (auto other = on(device("/job:worker/task:1"))) there = identity(constant(1.f));
  if (auto here = on(device("/job:worker/task:0"))) {
    tensor<float, 256, 256> a = broadcast_to(there, shape<256, 256>);
    tensor<float, 256, 256> b = a;
    for (int i = 0; i < 4000; ++i) b = matmul(b, a);
    sum = max(b);
  }
  session s(c.target("worker", 0), {.fold = false});
  auto step = s.prepare(sum);  // the step takes long, not the plan
  auto o = outcome_of([&] { step(run_options{.timeout = 50ms}); });
  CAPTURE(o);
  CHECK(o.code == errc::deadline_exceeded);
  CHECK(o.says("/job:worker/replica:0/task:0"));
  CHECK(s.run(there) == 1);
}

TEST_CASE_FIXTURE(own_graph, "close ends steps in other threads") {
  local_cluster c{{"worker", 2}};
  tensor<float, 256, 256> b;
  if (auto there = on(device("/job:worker/task:1"))) {
    tensor<float, 256, 256> a = broadcast_to(constant(0.001f), shape<256, 256>);
    b = a;
    for (int i = 0; i < 4000; ++i) b = matmul(b, a);
  }
  session s(c.target("worker", 0), {.fold = false});
  auto step = s.prepare(b);
  testing::outcome o;
  std::atomic<bool> begun{false};
  std::thread runner([&] {
    begun = true;
    o = outcome_of([&] { step(); });
  });
  while (!begun) std::this_thread::yield();
  s.close();
  runner.join();
  CAPTURE(o);
  CHECK((o.code == errc::cancelled || o.code == errc::failed_precondition));
}
