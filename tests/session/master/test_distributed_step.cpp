// SPDX-License-Identifier: Apache-2.0
// Steps with a task that does not follow the protocol.
#include <deft/session/wire/codec.hpp>
#include <deft/session/wire/dispatch.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <deft/transport/listener.hpp>

#include "session/sessions.hpp"

using namespace deft;
using testing::outcome_of;
using testing::own_graph;
using namespace std::chrono_literals;

namespace {

/// A cluster whose parameter server runs a function of the test when it gets its part of a step.
struct false_ps final : connection_handler {
  using run_part = std::function<void(const std::shared_ptr<connection>&, const wire::caller&)>;

  explicit false_ps(int workers, run_part f) : on_run_part(std::move(f)) {
    auto fresh = [] { return listen_socket("localhost:0"); };
    int own = fresh();
    std::vector<int> sockets;
    std::vector<std::string> addresses;
    for (int i = 0; i < workers; ++i)
      addresses.push_back(address_of_socket(sockets.emplace_back(fresh())));
    const cluster_spec spec{{"ps", {address_of_socket(own)}}, {"worker", addresses}};
    listen_options o;
    o.fd = own;
    o.self = {to_string(task.name()), task.incarnation(), spec.entries(),
              credentials::of_environment()};
    listens.emplace(o, *this);
    for (int i = 0; i < workers; ++i)
      servers.push_back(std::make_unique<server>(
          spec, "worker", i, server_options{.listen_fd = sockets[static_cast<std::size_t>(i)]}));
  }
  ~false_ps() {
    servers.clear();
    listens.reset();
  }
  void on_message(const std::shared_ptr<connection>& from, message&& m) override {
    const wire::caller caller(from, m.id);
    if (m.kind == static_cast<message_kind>(wire::devices::number))
      caller.answer(wire::device_list{task.devices()});
    else if (m.kind == static_cast<message_kind>(wire::run_part::number))
      on_run_part(from, caller);
    else if (m.id)
      caller.answer(wire::nothing());
  }

  task_runtime task{task_name("ps", 0), 1};
  const run_part on_run_part;
  std::vector<std::unique_ptr<server>> servers;
  std::optional<listener> listens;
};

}  // namespace

TEST_CASE_FIXTURE(own_graph,
                  "a step whose end nobody hears of says that it may have been applied") {
  false_ps c(1, [](const auto& from, const wire::caller&) { from->close(); });
  auto v = on(device("/job:ps/task:0"), [] { return variable<float>("v", 3.f); });
  auto up = on(device("/job:ps/task:0"), [&] { return v.assign_add(1.f); });
  session s(c.servers[0]->target());
  for (const bool updates : {true, false}) {
    const auto failed = updates ? outcome_of([&] { s.run(up); }) : outcome_of([&] { s.run(v); });
    CAPTURE(failed);
    CHECK(failed.code == errc::unavailable);
    CHECK(failed.says("lost /job:ps/replica:0/task:0"));
    CHECK(failed.says("; the step may have been applied") == updates);
    CHECK(failed.line != 0);
    CHECK(!failed.node.empty());
    CHECK(failed.device == "/job:ps/replica:0/task:0/cpu:0");
  }
}

TEST_CASE_FIXTURE(
    own_graph,
    "a step fails if a task is lost after its answer, as its values may not have arrived") {
  // The values never arrived, and no task is left that could report it.
  false_ps c(2, [](const auto& from, const wire::caller& caller) {
    caller.answer(wire::values());
    from->drain(no_deadline);
    from->close();
  });
  auto v = on(device("/job:ps/task:0"), [] { return variable<float>("v", 3.f); });
  auto sum = on(device("/job:worker/task:1"), [&] { return tensor<float>(v + 1.f); });
  session s(c.servers[0]->target());
  const auto failed = outcome_of([&] { s.run(run_options{.timeout = 10s}, sum); });
  CAPTURE(failed);
  CHECK(failed.code == errc::unavailable);
  CHECK(failed.says("lost /job:ps/replica:0/task:0"));
}

TEST_CASE_FIXTURE(own_graph, "values in an answer fail the step if this task has no part in it") {
  false_ps c(1, [](const auto&, const wire::caller& caller) {
    caller.answer(wire::values{{any_array::scalar(1.f)}, {7}});
  });
  auto v = on(device("/job:ps/task:0"), [] { return variable<float>("v", 3.f); });
  session s(c.servers[0]->target());
  const auto failed = outcome_of([&] { s.run(run_options{.timeout = 10s}, v); });
  CAPTURE(failed);
  CHECK(failed.code == errc::data_loss);
  CHECK(failed.says("values for a part that this task does not have"));
}
