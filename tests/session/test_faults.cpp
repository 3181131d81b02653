// SPDX-License-Identifier: Apache-2.0
// Clusters on unreliable connections. With DEFT_TEST_FAULTS=SEED all tests of this
// program run on a network that delays, stalls and cuts what is sent into small pieces.
#include <cstdlib>
#include <deft/session/launch/local_cluster.hpp>

#include "sessions.hpp"
#include "transport/faulty_stream.hpp"

using namespace deft;
using testing::faulty_network;
using testing::is_loss;
using testing::outcome_of;
using testing::own_graph;

namespace {

constexpr testing::faults whole_suite{
    .short_reads = 100, .short_writes = 20, .stalls = 50, .delays = 200};

[[maybe_unused]] const auto* const for_all_tests = [] {
  const char* seed = std::getenv("DEFT_TEST_FAULTS");
  return seed ? new faulty_network(whole_suite, std::strtoull(seed, nullptr, 10)) : nullptr;
}();

}  // namespace

TEST_CASE_FIXTURE(own_graph, "steps over bad connections give the same values") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    faulty_network network({.short_reads = 500, .short_writes = 300, .stalls = 300, .delays = 500},
                           seed);
    local_cluster c{{"ps", 1}, {"worker", 2}};
    graph mine;
    auto in = as_default(mine);
    auto v = on(device("/job:ps/task:0"), [] { return variable<float, 1000>("v", 1.f); });
    auto far = on(device("/job:worker/task:1"), [&] { return tensor<float, 1000>(v + v); });
    session s(c.target("worker", 0));
    s.run(initialize_all());
    for (int i = 1; i <= 20; ++i) {
      const auto x = s.run(far);
      CHECK(x(0) == 2.f * static_cast<float>(i));
      CHECK(x(999) == 2.f * static_cast<float>(i));
      s.run(v.assign_add(broadcast_to(constant(1.f), shape<1000>)));
    }
  }
}

TEST_CASE_FIXTURE(own_graph,
                  "a connection that is cut, be it within a message, is a loss and no more") {
  int steps = 0, lost = 0;
  bool sound = true;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    local_cluster c{{"ps", 1}, {"worker", 2}};
    graph mine;
    auto in = as_default(mine);
    auto v = on(device("/job:ps/task:0"), [] { return variable<float, 1000>("v", 1.f); });
    auto far = on(device("/job:worker/task:1"), [&] { return tensor<float, 1000>(v + v); });
    faulty_network network({.short_reads = 100, .stalls = 100, .cuts = 2}, seed);
    for (int i = 0; i < 5; ++i) {
      const auto o = outcome_of([&] {
        session s(c.target("worker", 0), {.connect_timeout = std::chrono::seconds(20)});
        s.run(initialize_all());
        for (int j = 0; j < 10; ++j, ++steps) sound &= s.run(far)(0) == 2.f;
      });
      CAPTURE(o);
      if (!o.message.empty()) {
        ++lost;
        CHECK(is_loss(o.code));
      }
    }
  }
  CHECK(sound);
  CHECK(steps > 0);
  CHECK(lost > 0);
}

TEST_CASE_FIXTURE(own_graph, "a step ends if its connection goes silent, without any timeout") {
  faulty_network network({});
  local_cluster c({{"ps", 1}, {"worker", 1}},
                  {.heartbeat_timeout = std::chrono::milliseconds(200)});
  auto v = on(device("/job:ps/task:0"), [] { return variable<float>("v", 3.f); });
  session s(c.target("worker", 0));
  s.run(initialize_all());
  CHECK(s.run(v + 1.f) == 4);
  network.go_down();
  const auto o = outcome_of([&] { s.run(v + 1.f); });
  CAPTURE(o);
  CHECK(o.code == errc::unavailable);
  CHECK(o.says("/job:ps/replica:0/task:0"));
  CHECK(o.says("nothing received from it for 200 ms"));
}
