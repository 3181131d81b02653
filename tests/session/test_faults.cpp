// SPDX-License-Identifier: Apache-2.0
// Clusters on unreliable connections. With DEFT_TEST_FAULTS=SEED all tests of this
// program run on a network that delays, stalls and cuts what is sent into small pieces.
#include <array>
#include <cstdlib>
#include <deft/session/launch/local_cluster.hpp>
#include <functional>
#include <utility>

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

namespace {

/// A target at which a session does not see that the task is of this process.
std::string by_name(const local_cluster& c) {
  const std::string address = c.spec().address("worker", 0);
  return "deft://localhost" + address.substr(address.rfind(':'));
}

/// Variables on two parameter servers and on the master's task, and a step that updates all three.
/// The connections to the second parameter server can be ended.
class two_servers_and_master {
 public:
  /// `remote`: the session is not on a server of this process, as far as it knows.
  explicit two_servers_and_master(bool remote) : session_(remote ? by_name(cluster_) : target_) {
    session_.run(a_.initializer(), own_.initializer());
    faulty_network network({});
    session_.run(b_.initializer());
    session_.run(step_);
    end_connections_ = [network = network.handle()](bool on_read) {
      network->on_read = on_read;
      network->ended = true;
    };
  }

  void end_connections(bool on_read) { end_connections_(on_read); }
  /// How a step ended, and its error.
  std::pair<step_fate, testing::outcome> run_step() {
    std::uint64_t number = 0;
    const auto o = outcome_of([&] { session_.run(run_options{.step = &number}, step_); });
    return {o.message.empty() ? step_fate::applied : session_.fate_of(number), o};
  }
  std::array<float, 3> values() {
    session looks(target_);
    return {looks.run(a_), looks.run(b_), looks.run(own_)};
  }

 private:
  static variable<float> at(const char* where, const char* name) {
    return on(device(where), [name] { return variable<float>(name, 0.f); });
  }
  local_cluster cluster_{{"ps", 2}, {"worker", 1}};
  const std::string target_ = cluster_.target("worker", 0);
  variable<float> a_ = at("/job:ps/task:0", "a"), b_ = at("/job:ps/task:1", "b"),
                  own_ = at("/job:worker/task:0", "own");
  operation step_ =
      group(std::vector<operation>{a_.assign_add(1.f), b_.assign_add(1.f), own_.assign_add(1.f)});
  session session_;
  std::function<void(bool)> end_connections_;
};

}  // namespace

TEST_CASE_FIXTURE(own_graph, "a step of which a part was never called is applied in part") {
  for (const bool remote : {false, true}) {
    CAPTURE(remote);
    graph mine;
    auto in = as_default(mine);
    two_servers_and_master c(remote);
    c.end_connections(false);
    const auto [fate, o] = c.run_step();
    CAPTURE(o);
    CHECK(o.code == errc::unavailable);
    CHECK(o.says("lost /job:ps/replica:0/task:1"));
    CHECK(o.says("; the step may have been applied"));
    CHECK(fate == step_fate::in_part);
    CHECK(c.values() == std::array{2.f, 1.f, 1.f});
    CHECK(c.run_step().first == step_fate::applied);
    CHECK(c.values() == std::array{3.f, 2.f, 2.f});
  }
}

TEST_CASE_FIXTURE(own_graph, "a connection that has ended is noticed before the first part runs") {
  two_servers_and_master c(false);
  c.end_connections(true);
  const auto [fate, o] = c.run_step();
  CAPTURE(o);
  CHECK(o.message.empty());
  CHECK(fate == step_fate::applied);
  CHECK(c.values() == std::array{2.f, 2.f, 2.f});
}

TEST_CASE_FIXTURE(own_graph,
                  "fate_of is true of sessions in one process, and of steps of one task") {
  local_cluster c{{"worker", 1}};
  for (const std::string& at : {std::string(), c.target("worker", 0), by_name(c)}) {
    CAPTURE(at);
    graph mine;
    auto in = as_default(mine);
    session s = at.empty() ? session() : session(at);
    const variable<float> v("v", 0.f);
    placeholder<std::int32_t> index("index");
    const auto table = identity(constant({1.f, 2.f}));
    // Fails where the index is out of range.
    const tensor<float> taken = gather(table, index);
    operation before, after;
    {
      auto first = control_dependencies(taken);
      before = v.assign_add(1.f);
    }
    const operation now = v.assign_add(1.f);
    tensor<float> late;
    {
      auto then = control_dependencies(now);
      late = gather(table, index);
    }
    s.run(v.initializer());
    const auto fate_of = [&](const auto& fetch) {
      std::uint64_t number = 0;
      const auto o = outcome_of([&] { s.run(run_options{.step = &number}, fetch, index = 7); });
      CAPTURE(o);
      CHECK(o.code == errc::out_of_range);
      CHECK(number != 0);
      return s.fate_of(number);
    };
    CHECK(fate_of(taken) == step_fate::unchanged);
    CHECK(fate_of(before) == step_fate::unchanged);
    CHECK(s.run(v) == 0);
    CHECK(fate_of(late) == step_fate::in_part);
    CHECK(s.run(v) == 1);
  }
}
