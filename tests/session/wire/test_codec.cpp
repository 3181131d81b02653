// SPDX-License-Identifier: Apache-2.0
// Messages arrive as they were sent.
#include <deft/deft.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/transport/frame.hpp>

#include "session/sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::outcome_of;
using namespace std::chrono_literals;

namespace {

/// `m` as it arrives. Its list of tensors is moved.
template <class M>
M travelled(M&& m) {
  message packed = wire::pack(m);
  CHECK(packed.kind == static_cast<message_kind>(M::number));
  return wire::unpack<M>(packed);
}

flat_graph some_graph() {
  graph own;
  auto in_own = as_default(own);
  const any_tensor a = constant({1.f, 2.f});
  const output fetched = any_tensor(a * 3.f).handle();
  return flatten({&fetched, 1}, {});
}

}  // namespace

TEST_CASE("ids, numbers and strings of messages arrive") {
  const auto part = travelled(wire::run_part{1, 2, 3, 5, 6, {any_array::scalar(4.f)}});
  CHECK(part.session == 1);
  CHECK(part.step == 2);
  CHECK(part.handle == 3);
  CHECK(part.ended_below == 5);
  CHECK(part.draw == 6);
  REQUIRE(part.feeds.size() == 1);
  CHECK(part.feeds[0] == any_array::scalar(4.f));
  CHECK_FALSE(part.trace);
  CHECK(travelled(wire::run_part{1, 2, 3, 5, 6, {}, true}).trace);

  const auto value = travelled(wire::tensors{1, 2, {0xffff'ffff}, {any_array::scalar(7)}});
  CHECK(value.session == 1);
  CHECK(value.step == 2);
  CHECK(value.keys == std::vector<std::uint32_t>{0xffff'ffff});
  REQUIRE(value.values.size() == 1);
  CHECK(value.values[0] == any_array::scalar(7));
  const auto two =
      travelled(wire::tensors{1, 2, {4, 3}, {any_array::scalar(7), any_array::scalar(8)}});
  CHECK(two.keys == std::vector<std::uint32_t>{4, 3});
  REQUIRE(two.values.size() == 2);
  CHECK(two.values[1] == any_array::scalar(8));

  const auto run = travelled(wire::run_plan{5, 6, 7s, true, {}, true});
  CHECK(run.trace);
  CHECK(run.session == 5);
  CHECK(run.plan == 6);
  CHECK(run.timeout == 7s);
  CHECK(run.can_be_cancelled);
  CHECK_FALSE(travelled(wire::run_plan{}).can_be_cancelled);
  CHECK_FALSE(travelled(wire::run_plan{}).trace);
  CHECK(travelled(wire::cancel_run{8, 9}).call == 9);
  CHECK(travelled(wire::resolve_run{8, 9, 10s}).patience == 10s);
  CHECK(travelled(wire::reset{"models"}).container == "models");
  CHECK(travelled(wire::reset_cluster{3, "models"}).container == "models");
  CHECK(travelled(wire::wait_signal{"ready"}).name == "ready");
  CHECK(travelled(wire::done{true}).serves);
}

TEST_CASE("graphs arrive with the elements of their constants") {
  const flat_graph sent = some_graph();
  const auto plan = travelled(wire::make_plan{4, 5ms, sent});
  CHECK(plan.session == 4);
  CHECK(plan.patience == 5ms);
  REQUIRE(plan.flat.graph.nodes.size() == sent.graph.nodes.size());
  CHECK(plan.flat.fetches.size() == 1);
  validate(plan.flat.graph);

  const auto options =
      travelled(wire::open_session{{.fuse = false, .timeout = 3s, .stream = 11}}).options;
  CHECK_FALSE(options.fuse);
  CHECK(options.timeout == 3s);
  CHECK(options.connect_timeout == 60s);
  CHECK(options.stream == 11);
}

TEST_CASE("an answer has no kind of its own") {
  CHECK(wire::pack(wire::nothing()).kind == message_kind::reply);
  message m = wire::pack(wire::plan_made{2, 3});
  CHECK(m.kind == message_kind::reply);
  CHECK(wire::unpack<wire::plan_made>(m).plan == 3);
}

TEST_CASE("a message of another form is refused") {
  message values = wire::pack(wire::tensors{1, 2, {4, 3}, std::vector<any_array>(2)});
  values.tensors.pop_back();
  values.tensors.push_back(any_array::scalar(1));
  values.tensors.push_back(any_array::scalar(2));
  CHECK(outcome_of([&] { wire::unpack<wire::tensors>(values); }).says("2 keys came with 3 values"));
  message cut = wire::pack(wire::reset{"models"});
  cut.meta.pop_back();
  CHECK_THROWS_AS(wire::unpack<wire::reset>(cut), error);
  message longer = wire::pack(wire::reset{"models"});
  longer.meta.push_back(std::byte{1});
  CHECK_THROWS_AS(wire::unpack<wire::reset>(longer), error);
  plan::part of_worker;
  of_worker.task = intern(task_name("worker", 0));
  const wire::register_part sent{1, 2, of_worker, {}};
  message part = wire::pack(wire::register_part(sent));
  const plan::part& p = sent.part;
  auto meta_for = [&](const std::string& task) {
    return to_bytes(task, p.graph, p.fetches, p.fetch_numbers, p.stream, sent.incarnations);
  };
  REQUIRE(part.meta == meta_for(to_string(*p.task)));
  part.meta = meta_for("");
  CHECK(outcome_of([&] {
          wire::unpack<wire::register_part>(part);
        }).says("a part does not name its task"));
}
