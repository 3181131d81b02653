// SPDX-License-Identifier: Apache-2.0
// Values that a task cannot use yet stay with their sender.
#include <deft/deft.hpp>
#include <deft/kernels/constant_folding.hpp>
#include <deft/plan/passes.hpp>
#include <thread>

#include "session/raw_caller.hpp"

using namespace deft;
using namespace deft::ext;
using testing::own_graph;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t session_id = 77, handle = 5;
constexpr const char* task_of_peer = "/job:ps/replica:0/task:0";

/// A part of worker 0 that never runs.
wire::register_part some_part() {
  plan::part nothing;
  nothing.task = intern(task_name("worker", 0));
  return {session_id, handle, nothing, {}};
}

wire::tensors value_of(std::uint64_t step) {
  return {session_id, step, {1}, {any_array(dtype::uint8, dims{1000})}};
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "steps run with windows of any size between tasks") {
  constexpr int count = 50;
  credit_window window;
  SUBCASE("a frame") { window.frames = 1; }
  SUBCASE("few bytes") { window.bytes = 1; }
  local_cluster c({{"ps", 1}, {"worker", 2}}, {.window = window});
  std::vector<variable<float, 100>> v;
  tensor<float> total = constant(0.f);
  {
    auto there = on(device("/job:ps/task:0"));
    for (int i = 0; i < count; ++i) v.emplace_back(str("v", i), ones());
  }
  for (int i = 0; i < count; ++i) {
    auto here = on(device(str("/job:worker/task:", i % 2)));
    total = total + sum(v[static_cast<std::size_t>(i)] * 2.f);
  }
  std::vector<std::jthread> threads;
  session(c.target("worker", 0)).run(initialize_all());
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      session s(c.target("worker", t % 2));
      auto step = s.prepare(total);
      for (int i = 0; i < 20; ++i) CHECK(step() == 200.f * count);
    });
}

TEST_CASE("values for steps that have not begun stay with their sender until they do") {
  local_cluster c({{"worker", 1}}, {.window = {1'000'000, 16}});
  testing::raw_caller peer(c, task_of_peer);
  peer.to->post(wire::pack(some_part()));
  for (std::uint64_t step = 1; step <= 1000; ++step) peer.to->post(wire::pack(value_of(step)));
  const auto other = peer.open_session();  // is not delayed
  CHECK(!peer.to->drain(std::chrono::steady_clock::now()));
  // The end of steps, and of the session, makes room for more.
  for (std::uint64_t step = 1; step <= 900; ++step)
    peer.to->post(wire::pack(wire::cancel_step{session_id, step}));
  CHECK(peer.outcome(wire::pack(wire::cluster_devices{other})).code == errc{});
  CHECK(!peer.to->drain(std::chrono::steady_clock::now()));
  peer.to->post(wire::pack(wire::drop_session{session_id}));
  peer.links.wait_until([&] { return peer.to->drain(std::chrono::steady_clock::now()); },
                        testing::raw_caller::soon());
  CHECK(peer.to->drain(std::chrono::steady_clock::now()));
}

TEST_CASE("values for a session that is not open yet do not delay their sender") {
  local_cluster c({{"worker", 1}}, {.window = {1'000'000, 16}});
  testing::raw_caller peer(c, task_of_peer);
  for (std::uint64_t step = 1; step <= 1000; ++step) peer.to->post(wire::pack(value_of(step)));
  peer.links.wait_until([&] { return peer.to->drain(std::chrono::steady_clock::now()); },
                        testing::raw_caller::soon());
  CHECK(peer.to->drain(std::chrono::steady_clock::now()));
}
