// SPDX-License-Identifier: Apache-2.0
// Who may send which message to a task.
#include <deft/deft.hpp>
#include <deft/session/server/coordination.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/session/wire/senders.hpp>

#include "session/raw_caller.hpp"

using namespace deft;
using namespace deft::ext;
using namespace std::chrono_literals;

TEST_CASE("every kind of message is refused from those who may not send it") {
  local_cluster c{{"worker", 2}};
  const std::string task = "/job:worker/replica:0/task:1";
  testing::raw_caller owner(c, "client"), stranger(c, "client"), master(c, task);
  const auto session = owner.open_session();
  plan::part nothing;
  nothing.task = intern(task_name("worker", 0));
  master.to->post(wire::pack(wire::register_part{77, 1, nothing, {}}));
  master.answer(wire::pack(wire::devices{}));  // so it has been read
  const auto of_kind = [&](wire::kind k) {
    using wire::kind, wire::pack;
    switch (k) {
      case kind::register_part:
        return pack(wire::register_part{77, 2, nothing, {}});
      case kind::run_part:
        return pack(wire::run_part{77, 1, 1});
      case kind::tensors:
        return pack(wire::tensors{77, 1, {1}, {any_array::scalar(1.f)}});
      case kind::cancel_step:
        return pack(wire::cancel_step{77, 1});
      case kind::resolve_step:
        return pack(wire::resolve_step{77, 1});
      case kind::drop_part:
        return pack(wire::drop_part{77, 1});
      case kind::drop_session:
        return pack(wire::drop_session{77});
      case kind::devices:
        return pack(wire::devices{});
      case kind::reset:
        return pack(wire::reset{"models"});
      case kind::open_session:
        return pack(wire::open_session{});
      case kind::make_plan:
        return pack(wire::make_plan{session, 0s, {}});
      case kind::describe_plan:
        return pack(wire::describe_plan{session, 0s, {}});
      case kind::run_plan:
        return pack(wire::run_plan{.session = session});
      case kind::cancel_run:
        return pack(wire::cancel_run{session, 1});
      case kind::resolve_run:
        return pack(wire::resolve_run{session, 1});
      case kind::drop_plan:
        return pack(wire::drop_plan{session, 1});
      case kind::cluster_devices:
        return pack(wire::cluster_devices{session});
      case kind::reset_cluster:
        return pack(wire::reset_cluster{session, "models"});
      case kind::close_session:
        return pack(wire::close_session{session});
      case kind::wait_signal:
        return pack(wire::wait_signal{"set"});
      case kind::set_signal:
        return pack(wire::set_signal{"set"});
      case kind::done:
        return pack(wire::done{});
      case kind::link_lost:
        break;
    }
    FAIL("not a message to a task");
    return message();
  };
  for (const auto& rule : wire::message_rules) {
    CAPTURE(rule.name);
    const auto o = stranger.outcome(of_kind(rule.number));
    CAPTURE(o);
    const bool allowed = rule.may_send == wire::sender::anyone;
    CHECK((o.code == errc::permission_denied) == !allowed);
    if (!allowed) CHECK(o.says(std::string(rule.name)));
  }
  // The task is still what it was, the session and the part are there, and worker 1 is not done.
  CHECK(owner.outcome(of_kind(wire::kind::cluster_devices)).code == errc{});
  CHECK(master.outcome(of_kind(wire::kind::run_part)).code == errc{});
  testing::raw_caller again(c, task);  // the same process, on another connection
  CHECK(again.outcome(of_kind(wire::kind::drop_session)).code == errc{});
  CHECK(!c.at("worker", 0).coordination().members()[1].done);
  master.answer(of_kind(wire::kind::set_signal));
  master.answer(of_kind(wire::kind::wait_signal));
  master.answer(of_kind(wire::kind::done));
  CHECK(c.at("worker", 0).coordination().members()[1].done);
}

TEST_CASE("nobody else may speak for a master of this process") {
  local_cluster c{{"worker", 2}};
  graph own;
  auto in = as_default(own);
  session s(c.target("worker", 0), {.fold = false});
  const auto v = on(device("/job:worker/task:0"), [] { return variable<float>("v", 1.f); });
  const auto far = on(device("/job:worker/task:1"), [&] { return tensor<float>(v * 2.f); });
  s.run(v.initializer());
  CHECK(s.run(far, v) == std::tuple(2.f, 1.f));
  testing::raw_caller task(c, "/job:worker/replica:0/task:1");
  for (std::uint64_t session = 1; session < 3; ++session)  // not known
    CHECK(task.outcome(wire::pack(wire::drop_session{session})).code == errc{});
  CHECK(s.run(far, v) == std::tuple(2.f, 1.f));
}
