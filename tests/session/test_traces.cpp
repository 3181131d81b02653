// SPDX-License-Identifier: Apache-2.0
// What runs on which task, as a trace of the step says.
#include <deft/session/launch/local_cluster.hpp>
#include <set>

#include "processes.hpp"
#include "sessions.hpp"

using namespace deft;
using testing::own_graph;

namespace {

const trace_event* find(const step_trace& t, std::string_view node) {
  const auto at = std::ranges::find(t.events, node, &trace_event::node);
  return at == t.events.end() ? nullptr : &*at;
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "a trace of a run in this process names its nodes, in order") {
  placeholder<float, 4, 4> x("x");
  const tensor<float, 4, 4> a = matmul(x, x);
  const tensor<float, 4, 4> b = matmul(a, x);
  session s;
  step_trace t;
  ndarray<float, 4, 4> one;
  for (auto& e : one) e = 1;
  CHECK(s.run(run_options{.trace = &t}, b, x = one)(0, 0) == 16);
  const trace_event *first = find(t, "matmul"), *second = find(t, "matmul_1");
  REQUIRE(first);
  REQUIRE(second);
  CHECK(first->op == "matmul");
  CHECK(first->device == s.device_of(a));
  CHECK(first->place.find("test_traces.cpp:") != std::string::npos);
  CHECK(first->begin <= first->end);
  CHECK(first->end <= second->begin);
  const std::size_t events = t.events.size();
  s.run(b, x = one);
  CHECK(t.events.size() == events);
  s.run(run_options{.trace = &t}, b, x = one);
  CHECK(t.events.size() == events);  // those of the last run
}

TEST_CASE_FIXTURE(own_graph, "a trace has the nodes of all tasks") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  const auto v = on(device("/job:ps/task:0"), [] { return variable<float>("v", 1.f); });
  const auto far = on(device("/job:worker/task:1"), [&] { return tensor<float>(exp(v)); });
  const auto here = on(device("/job:worker/task:0"), [&] { return tensor<float>(tanh(far)); });
  for (const char* target : {"worker", "ps"}) {
    CAPTURE(target);
    session s(c.target(target, 0));
    s.run(initialize_all());
    step_trace t;
    s.run(run_options{.trace = &t}, here);
    std::set<std::string> devices;
    for (const auto& e : t.events) devices.insert(e.device.substr(0, e.device.rfind('/')));
    CHECK(devices == std::set<std::string>{"/job:ps/replica:0/task:0",
                                           "/job:worker/replica:0/task:0",
                                           "/job:worker/replica:0/task:1"});
    REQUIRE(find(t, "exp"));
    REQUIRE(find(t, "tanh"));
    CHECK(find(t, "exp")->device == s.device_of(far));
  }
}

TEST_CASE("a trace reaches a client in another process") {
  local_cluster c{{"worker", 2}};
  testing::child_program p("remote_client", {c.target("worker", 0), "trace"});
  CHECK(p.line() == "sum on /job:worker/replica:0/task:1/" + testing::usual_device());
  CHECK(p.line() == "exp on /job:worker/replica:0/task:0/" + testing::usual_device());
  CHECK(p.wait() == 0);
}
