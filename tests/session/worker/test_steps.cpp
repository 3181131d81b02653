// SPDX-License-Identifier: Apache-2.0
// Steps of a part, run by single messages of a master.
#include <deft/deft.hpp>
#include <deft/kernels/constant_folding.hpp>
#include <deft/op/plan/recv.hpp>
#include <deft/plan/passes.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <deft/session/worker/worker.hpp>
#include <future>
#include <thread>

#include "session/raw_caller.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

constexpr std::uint64_t session_id = 4711, handle = 1;

/// The part of worker 1, which waits for a value of worker 0.
plan::part waiting_part() {
  graph own;
  auto in_own = as_default(own);
  tensor<float> x, y;
  if (auto there = on(device("/job:worker/task:0"))) x = identity(constant(1.f));
  if (auto there = on(device("/job:worker/task:1"))) y = x + 1.f;
  const output fetched = any_tensor(y).handle();
  std::vector<device_info> devices;
  for (int i = 0; i < 2; ++i)
    for (auto& d : task_runtime(task_name("worker", i)).devices()) devices.push_back(d);
  auto parts = plan::run_passes(flatten({&fetched, 1}, {}), devices,
                                {.own_task = intern(task_name("worker", 0)), .fold = false},
                                evaluate_on_host)
                   .parts;
  for (auto& p : parts)
    if (*p.task == task_name("worker", 1)) return std::move(p);
  FAIL("there is no part for worker 1");
  return {};
}

std::vector<std::uint32_t> waiting_keys() {
  std::vector<std::uint32_t> keys;
  const auto part = waiting_part();
  for (const auto& n : part.graph.nodes)
    if (n.op->role == op_role::receive)
      keys.push_back(static_cast<std::uint32_t>(std::stoul(decode<op::recv>(n.attributes).key)));
  return keys;
}

wire::run_part run(std::uint64_t step, std::uint64_t ended_below) {
  return {session_id, step, handle, ended_below};
}

}  // namespace

TEST_CASE("the next step of a master ends its former ones on tasks that missed their end") {
  local_cluster c{{"worker", 2}};
  testing::raw_caller master(c, "/job:worker/replica:0/task:0", 1);
  master.to->post(wire::pack(wire::register_part{session_id, handle, waiting_part(), {}}));
  auto first = master.to->call(wire::pack(run(1, 1)));
  auto second = master.to->call(wire::pack(run(2, 1)));
  auto third = master.to->call(wire::pack(run(3, 2)));
  const auto o = master.outcome(first);
  CHECK(o.code == errc::cancelled);
  CHECK(o.says("the master has ended the step"));
  CHECK_FALSE(second->done());
  master.to->post(wire::pack(wire::cancel_step{session_id, 2}));
  CHECK(master.outcome(second).code == errc::cancelled);
  CHECK_FALSE(third->done());
  master.to->post(wire::pack(wire::cancel_step{session_id, 3}));
  CHECK(master.outcome(third).code == errc::cancelled);
}

TEST_CASE("a step below those that have ended is not run") {
  local_cluster c{{"worker", 2}};
  testing::raw_caller master(c, "/job:worker/replica:0/task:0", 1);
  master.to->post(wire::pack(wire::register_part{session_id, handle, waiting_part(), {}}));
  auto later = master.to->call(wire::pack(run(1000, 1000)));
  const auto o = master.outcome(wire::pack(run(3, 1)));
  CHECK(o.code == errc::aborted);
  CHECK(o.says("step 3 has already ended"));
  master.to->post(wire::pack(wire::drop_session{session_id}));
  CHECK(master.outcome(later).code == errc::cancelled);
}

TEST_CASE("a task answers how a step ended, on another connection too, and repeats none") {
  local_cluster c{{"worker", 2}};
  const std::string name = "/job:worker/replica:0/task:0";
  testing::raw_caller master(c, name, 1);
  const auto resolve = [](std::uint64_t step) {
    return wire::pack(wire::resolve_step{session_id, step});
  };
  const auto fate_of = [&](testing::raw_caller& asks, std::uint64_t step) {
    return wire::unpack<wire::fate_of_step>(asks.answer(resolve(step))).fate;
  };
  const wire::register_part part{session_id, handle, waiting_part(), {}};
  master.to->post(wire::pack(wire::register_part(part)));
  const auto send = [&](std::uint64_t step) {
    const auto keys = waiting_keys();
    master.to->post(wire::pack(wire::tensors{
        session_id, step, keys, std::vector<any_array>(keys.size(), any_array::scalar(1.f))}));
  };
  auto first = master.to->call(wire::pack(run(1, 1)));
  send(1);
  master.answer(first);
  CHECK(fate_of(master, 1) == step_fate::applied);
  auto second = master.to->call(wire::pack(run(2, 1)));
  CHECK(fate_of(master, 2) == step_fate::unchanged);  // it waited, and was stopped
  CHECK(master.outcome(second).code == errc::cancelled);
  send(3);
  master.to->post(wire::pack(wire::cancel_step{session_id, 3}));
  CHECK(fate_of(master, 3) == step_fate::unchanged);
  auto fourth = master.to->call(wire::pack(run(4, 4)));
  // It is asked for before it comes.
  CHECK(fate_of(master, 5) == step_fate::unchanged);
  CHECK(master.outcome(wire::pack(run(5, 4))).code == errc::aborted);
  master.to->close();

  testing::raw_caller again(c, name, 1);
  CHECK(fate_of(again, 4) == step_fate::unchanged);
  CHECK(fate_of(again, 1) == step_fate::applied);
  again.to->post(wire::pack(wire::register_part(part)));
  const auto o = again.outcome(wire::pack(run(1, 1)));
  CHECK(o.code == errc::aborted);
  CHECK(o.says("step 1 has already ended"));
  // So does a session that the task has never heard of.
  CHECK(wire::unpack<wire::fate_of_step>(
            again.answer(wire::pack(wire::resolve_step{session_id + 1, 1})))
            .fate == step_fate::unchanged);
  again.to->post(wire::pack(wire::register_part{session_id + 1, handle, waiting_part(), {}}));
  wire::run_part late = run(1, 1);
  late.session = session_id + 1;
  CHECK(again.outcome(wire::pack(std::move(late))).code == errc::aborted);
}

TEST_CASE("the end of a connection that was replaced does not fail later steps") {
  local_cluster c{{"worker", 2}};
  const std::string name = "/job:worker/replica:0/task:0";
  testing::raw_caller master(c, "client", 1);
  master.to->post(wire::pack(wire::register_part{session_id, handle, waiting_part(), {{name, 5}}}));
  // A call is answered after the messages before it.
  const auto begin = [&](std::uint64_t step) {
    auto asked = master.to->call(wire::pack(run(step, 1)));
    master.answer(wire::pack(wire::devices{}));
    return asked;
  };
  testing::raw_caller before(c, name, 1);
  auto first = begin(1);
  testing::raw_caller now(c, name, 1);
  auto second = begin(2);
  before.to->close();
  const auto o = master.outcome(first);
  CHECK(o.code == errc::unavailable);
  CHECK(o.says("lost " + name));
  CHECK_FALSE(second->done());
  const auto keys = waiting_keys();
  now.to->post(wire::pack(wire::tensors{
      session_id, 2, keys, std::vector<any_array>(keys.size(), any_array::scalar(1.f))}));
  const auto values = wire::unpack<wire::values>(master.answer(second));
  REQUIRE(values.tensors.size() == 1);
  CHECK(values.tensors[0] == any_array::scalar(2.f));
  // Nor does a step survive the end of the newer one.
  auto third = begin(3);
  now.to->close();
  CHECK(master.outcome(third).code == errc::unavailable);
}

TEST_CASE("how steps of unknown sessions ended is told for a limited number of them") {
  local_cluster c{{"worker", 2}};
  const auto fate_of = [&](testing::raw_caller& asks, std::uint64_t session) {
    return wire::unpack<wire::fate_of_step>(asks.answer(wire::pack(wire::resolve_step{session, 1})))
        .fate;
  };
  testing::raw_caller one(c, "client", 1), other(c, "client", 1);
  for (std::uint64_t i = 1; i <= worker::most_unheard; ++i)
    CHECK(fate_of(one, i) == step_fate::unchanged);
  CHECK(fate_of(one, 1'000) == step_fate::unknown);
  CHECK(fate_of(one, 1) == step_fate::unchanged);
  CHECK(fate_of(other, 1'000) == step_fate::unchanged);
}

TEST_CASE("values that come too early end steps of their own session only") {
  const auto w = worker::make(std::make_shared<task_runtime>(task_name("worker", 1)),
                              cluster_spec{{"worker", {"localhost:1", "localhost:2"}}}, {});
  const auto keys = waiting_keys();
  const auto deliver = [&](std::uint64_t session, const any_array& value) {
    w->deliver({session, 1, keys, std::vector<any_array>(keys.size(), value)}, nullptr);
  };
  const auto outcome_of_step = [&](std::uint64_t session) {
    // Another thread may run the step.
    const auto failure = std::make_shared<std::promise<std::shared_ptr<const error>>>();
    w->run_part({session, 1, handle, 1}, {}, nullptr,
                [failure](step_outcome o) { failure->set_value(std::move(o.failure)); });
    return failure->get_future().get();
  };
  for (std::uint64_t session : {1, 2})
    w->register_part(session, handle, waiting_part(), {}, nullptr);
  // As much as is allowed; the values share their memory.
  constexpr std::size_t about_a_value = 128;
  std::size_t all = 0;
  for (std::int64_t size : {64 << 20, 64 << 10, 1 << 10, 0}) {
    const any_array value(dtype::uint8, dims{size});
    const std::size_t counted = keys.size() * (value.bytes() + about_a_value);
    for (; all + counted <= worker::most_early_bytes; all += counted) deliver(1, value);
  }
  deliver(2, any_array::scalar(1.f));
  deliver(1, any_array::scalar(1.f));
  const auto failure = outcome_of_step(1);
  REQUIRE(failure);
  CHECK(failure->code() == errc::resource_exhausted);
  CHECK(failure->message().find("received too many values for step 1 before it began") !=
        std::string::npos);
  CHECK_FALSE(outcome_of_step(2));
}
