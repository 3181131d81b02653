// SPDX-License-Identifier: Apache-2.0
// Steps that fail, also with a task that does not follow the protocol.
#include <deft/session/wire/codec.hpp>
#include <deft/session/wire/dispatch.hpp>
#include <deft/session/worker/task_runtime.hpp>
#include <deft/transport/listener.hpp>
#include <future>
#include <mutex>
#include <thread>

#include "session/sessions.hpp"

using namespace deft;
using namespace deft::ext;
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
      caller.answer(devices);
    else if (m.kind == static_cast<message_kind>(wire::run_part::number))
      on_run_part(from, caller);
    else if (m.id)
      caller.answer(wire::nothing());
    if (m.kind == static_cast<message_kind>(wire::register_part::number)) {
      std::lock_guard lock(guard);
      incarnations.push_back(wire::unpack<wire::register_part>(m).incarnations);
    }
  }

  task_runtime task{task_name("ps", 0)};
  wire::device_list devices{task.devices()};
  std::mutex guard;
  std::vector<incarnation_list> incarnations;  ///< of the parts that were registered
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
    CHECK(failed.device == "/job:ps/replica:0/task:0/" + testing::usual_device());
  }
}

TEST_CASE_FIXTURE(
    own_graph, "who runs a step on a lost or stopped master hears that it may have been applied") {
  const auto v = variable<float>("v", 0.f);
  const operation up = v.assign_add(1.f), waits = await_initialized(variable<float>("never", 0.f));
  for (const auto& [direct, updated] :
       {std::pair{true, true}, {true, false}, {false, true}, {false, false}}) {
    const bool updates = updated;  // lambdas take no structured binding
    local_cluster c{{"worker", 1}};
    const std::string address = c.spec().address("worker", 0), target = c.target("worker", 0);
    // Otherwise than the server knows itself it is not called directly.
    session s(direct ? target : "deft://localhost" + address.substr(address.rfind(':')));
    session looks(target);
    looks.run(v.initializer());
    auto ran = std::async(std::launch::async, [&] {
      return outcome_of([&] { updates ? s.run(waits, up) : s.run(waits); });
    });
    while (updates && float(looks.run(v)) == 0) std::this_thread::yield();
    c.kill("worker", 0);
    const auto o = ran.get();
    CAPTURE(o);
    CHECK(o.code == errc::unavailable);
    CHECK(o.says("; the step may have been applied") == updates);
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

TEST_CASE_FIXTURE(own_graph,
                  "a part knows the incarnations of the tasks it exchanges values with") {
  false_ps c(3, [](const auto&, const wire::caller&) { throw error(errc::aborted, "enough"); });
  auto v = on(device("/job:ps/task:0"), [] { return variable<float>("v", 3.f); });
  auto alone = on(device("/job:worker/task:2"), [] { return random_normal(shape<1>); });
  session s(c.servers[0]->target());
  CHECK(outcome_of([&] { s.run(v, alone); }).says("enough"));
  auto sum = on(device("/job:worker/task:1"), [&] { return tensor<float>(v + 1.f); });
  CHECK(outcome_of([&] { s.run(sum, alone); }).says("enough"));
  std::lock_guard lock(c.guard);
  REQUIRE(c.incarnations.size() == 2);
  CHECK(c.incarnations[0].empty());
  REQUIRE(c.incarnations[1].size() == 1);
  CHECK(c.incarnations[1][0].first == "/job:worker/replica:0/task:1");
}

TEST_CASE_FIXTURE(own_graph, "a task may leave out only kernels that the master has") {
  false_ps c(1, [](const auto&, const wire::caller& caller) {
    caller.answer(wire::values{{any_array::scalar(1.f)}});
  });
  auto v = on(device("/job:ps/task:0"), [] { return variable<float>("v", 3.f); });
  auto& left_out = c.devices.known_kernels;
  for (auto& d : c.devices.devices) {
    left_out.push_back(d.kernels->hash());
    d.kernels = nullptr;
  }
  bool sound = false;
  SUBCASE("the same") { sound = true; }
  SUBCASE("others") { left_out[0] += 1; }
  SUBCASE("of more devices than there are") { left_out.push_back(left_out[0]); }
  const auto o = outcome_of([&] { session(c.servers[0]->target()).run(v); });
  CAPTURE(o);
  CHECK(o.code == (sound ? errc{} : errc::data_loss));
  if (!sound) CHECK(o.says("leaves out kernels that this task does not have"));
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

TEST_CASE_FIXTURE(own_graph, "a session learns how a step that failed ended") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  const auto at = [](const char* name, auto f) { return on(device(name), f); };
  const auto v = at("/job:ps/task:0", [] { return variable<float>("v", 0.f); });
  const auto own = at("/job:worker/task:0", [] { return variable<float>("own", 0.f); });
  const auto other = at("/job:worker/task:1", [] { return variable<float>("other", 0.f); });
  const auto never = at("/job:worker/task:1", [] { return variable<float>("never", 0.f); });
  const operation waits = await_initialized(never);
  const auto after = [&](const auto& of) {
    auto scope = control_dependencies(waits);
    return operation(of.assign_add(1.f));
  };
  session s(c.target("worker", 0));
  s.run(v.initializer(), own.initializer(), other.initializer());
  session looks(c.target("worker", 0));
  const auto value = [&](const auto& of) { return float(looks.run(of)); };
  // The number of a run of `ops` that was cancelled once `far_enough`, which it is before it ends.
  const auto cancelled = [&](const auto& far_enough, const auto&... ops) {
    for (;;) {
      std::uint64_t step = 0;
      cancel_source source;
      auto ran = std::async(std::launch::async, [&] {
        return outcome_of([&] {
          s.run(run_options{.timeout = 1min, .cancel = source.token(), .step = &step}, ops...);
        });
      });
      while (!far_enough()) std::this_thread::yield();
      source.cancel();
      CHECK(ran.get().code == errc::cancelled);
      if (step != 0) return step;
    }
  };
  const auto fate_of = [&](const auto&... x) { return s.fate_of(cancelled(x...)); };
  const auto at_once = [] { return true; };
  CHECK(fate_of(at_once, waits) == step_fate::unchanged);  // nothing is updated
  CHECK(fate_of(at_once, after(v)) == step_fate::unchanged);
  CHECK(value(v) == 0);
  CHECK(fate_of([&] { return value(v) == 1; }, waits, v.assign_add(1.f)) == step_fate::applied);
  CHECK(fate_of([&] { return value(own) == 1; }, waits, own.assign_add(1.f)) == step_fate::applied);
  CHECK(fate_of([&] { return value(v) == 2; }, after(other), v.assign_add(1.f)) ==
        step_fate::in_part);
  CHECK(value(other) == 0);

  std::uint64_t step = 1;
  s.run(run_options{.step = &step}, v);
  CHECK(s.fate_of(step) == step_fate::unknown);  // it has not failed
  CHECK(s.fate_of(0) == step_fate::unknown);
  step = cancelled([&] { return value(v) == 3; }, waits, v.assign_add(1.f));
  c.restart("ps", 0);
  CHECK(s.fate_of(step) == step_fate::unknown);
  s.close();
  CHECK(outcome_of([&] { s.fate_of(step); }).code == errc::failed_precondition);
}
