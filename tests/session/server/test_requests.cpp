// SPDX-License-Identifier: Apache-2.0
// Answers of a task to messages that deft's own sessions do not send.
#include <deft/deft.hpp>
#include <deft/session/server/client_sessions.hpp>
#include <deft/session/server/coordination.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/session/wire/senders.hpp>
#include <deft/session/worker/worker.hpp>
#include <deft/train/replicas/operations.hpp>
#include <deft/transport/channel_group.hpp>
#include <deft/transport/connection_state.hpp>
#include <deft/transport/listener.hpp>
#include <deft/transport/tcp.hpp>

#include "own_operations.hpp"
#include "reserved_address.hpp"
#include "session/raw_caller.hpp"
#include "transport/wire.hpp"

using namespace deft;
using namespace deft::ext;
using testing::outcome_of;
using namespace std::chrono_literals;

TEST_CASE("a call with a message that has no answer gets an empty one") {
  local_cluster c{{"worker", 1}};
  testing::raw_caller client(c, "client");
  for (message m : {wire::pack(wire::close_session{77}), wire::pack(wire::cancel_step{77, 1}),
                    wire::pack(wire::drop_session{77})})
    CHECK(client.answer(std::move(m)).kind == message_kind::reply);
}

TEST_CASE("a list of devices leaves out the kernels that the caller has") {
  local_cluster c{{"worker", 1}};
  testing::raw_caller client(c, "client");
  const auto list = [&](std::vector<std::uint64_t> known) {
    return wire::unpack<wire::device_list>(
        client.answer(wire::pack(wire::devices{std::move(known)})));
  };
  const auto full = list({7});
  REQUIRE(!full.devices.empty());
  const auto& kernels = *full.devices[0].kernels;
  CHECK(kernels.has("matmul", dtype::float32));
  CHECK(full.known_kernels[0] == 0);
  const auto brief = list({7, kernels.hash()});
  REQUIRE(brief.devices.size() == full.devices.size());
  CHECK(brief.devices[0].kernels->entries().empty());
  CHECK(brief.known_kernels[0] == kernels.hash());
}

TEST_CASE("calls for unknown sessions and plans are refused") {
  local_cluster c{{"worker", 1}};
  testing::raw_caller client(c, "client");
  CHECK(client.outcome(wire::pack(wire::run_plan{.session = 5})).code == errc::not_found);
  const auto session = client.open_session();
  const auto o = client.outcome(wire::pack(wire::run_plan{.session = session, .plan = 3}));
  CHECK(o.code == errc::not_found);
  CHECK(o.says("the session has no plan 3"));
  CHECK(client.outcome(wire::pack(wire::cluster_devices{session})).code == errc{});
}

TEST_CASE("more fetches than an answer holds are refused when the plan is made") {
  local_cluster c{{"worker", 1}};
  testing::raw_caller client(c, "client");
  const auto session = client.open_session();
  graph own;
  auto in_own = as_default(own);
  const output one = any_tensor(constant(1.f)).handle();
  wire::make_plan plan{session, 0s, flatten({&one, 1}, {})};
  plan.flat.fetches.resize(65'537, plan.flat.fetches[0]);
  const auto o = client.outcome(wire::pack(plan));
  CHECK(o.code == errc::invalid_argument);
  CHECK(o.says("a run fetches at most 65536 values of other tasks, not 65537"));
  plan.flat.fetches.resize(65'536);
  CHECK(client.outcome(wire::pack(plan)).code == errc{});
}

TEST_CASE("a run that can be cancelled is cancelled, even if its plan was quick before") {
  local_cluster c{{"worker", 2}};
  testing::raw_caller client(c, "client");
  const auto session = client.open_session();
  const std::string here = "/job:worker/task:0", far = "/job:worker/task:1";
  struct places {
    std::string products, other;
  };
  for (const auto& at : {places{here, here}, {here, far}, {far, here}}) {
    CAPTURE(at.products);
    CAPTURE(at.other);
    graph own;
    auto in_own = as_default(own);
    placeholder<float, dyn, dyn> x("x");
    std::optional<variable<float>> v;
    any_tensor y = x, other;
    output update;
    if (auto there = on(device(at.products))) {
      v.emplace("v", zeros());
      for (int i = 0; i < 100; ++i) y = any_tensor(matmul(y, any_tensor(x)) * 0.001f);
      update = v->assign(tensor<float>(sum(y))).value().handle();
    }
    if (auto there = on(device(at.other))) other = sum(x);
    deft::session s(c.target("worker", 0));
    s.run(initialize_all());
    const output fetched[] = {update, other.handle()}, fed = any_tensor(x).handle();
    const auto plan = wire::unpack<wire::plan_made>(
        client.answer(wire::pack(wire::make_plan{session, 0s, flatten(fetched, {&fed, 1})})));
    auto run = [&](std::int64_t n) {
      any_array a(dtype::float32, dims{n, n});
      std::fill_n(static_cast<float*>(a.mutable_raw()), n * n, 1.f);
      return client.to->call(wire::pack(wire::run_plan{session, plan.plan, 0s, true, {a}}));
    };
    for (int i = 0; i < 4; ++i) client.answer(run(2));
    const float before = s.run(*v);
    auto large = run(600);  // some seconds
    client.to->post(wire::pack(wire::cancel_run{session, large->id()}));
    CHECK(client.outcome(large).code == errc::cancelled);
    CHECK(s.run(*v) == before);  // the products have not ended
  }
}

TEST_CASE("a run that is cancelled before it begins does not") {
  local_cluster c{{"worker", 1}};
  const std::string address = c.spec().address("worker", 0);
  // By another name of this host, so that it is not recognized as a server of this process.
  session s("deft://localhost" + address.substr(address.rfind(':')));
  cancel_source cancel;
  cancel.cancel();
  const auto o =
      outcome_of([&] { s.run(run_options{.cancel = cancel.token()}, constant(1.f) + 1.f); });
  CHECK(o.code == errc::cancelled);
}

TEST_CASE("more runs at once than there are threads all end") {
  constexpr int runs = 1500;
  local_cluster c{{"worker", 2}};
  testing::raw_caller client(c, "client");
  const auto session = client.open_session();
  graph own;
  auto in_own = as_default(own);
  placeholder<float> x("x");
  any_tensor far, near;
  if (auto there = on(device("/job:worker/task:1"))) far = x * 2.f;
  if (auto here = on(device("/job:worker/task:0"))) {
    // Takes so long that no thread which reads messages may run it.
    any_tensor long_work = any_tensor(far * 0.f) + any_tensor(constant(0.001f));
    long_work = broadcast_to(long_work, {64, 64});
    const any_tensor factor = long_work;
    for (int i = 0; i < 40; ++i) long_work = matmul(long_work, factor);
    near = far + any_tensor(sum(long_work)) * 0.f + any_tensor(constant(1.f));
  }
  const output y = near.handle(), fed = any_tensor(x).handle();
  const auto plan = wire::unpack<wire::plan_made>(
      client.answer(wire::pack(wire::make_plan{session, 0s, flatten({&y, 1}, {&fed, 1})})));
  std::vector<std::shared_ptr<pending>> all;
  for (int i = 0; i < runs; ++i)
    all.push_back(client.to->call(wire::pack(wire::run_plan{
        session, plan.plan, 0s, i % 2 == 0, {any_array::scalar(static_cast<float>(i))}})));
  for (int i = 0; i < runs; ++i) {
    const auto values = wire::unpack<wire::values>(client.answer(all[static_cast<std::size_t>(i)]));
    REQUIRE(values.tensors.size() == 1);
    CHECK(values.tensors[0] == any_array::scalar(2.f * static_cast<float>(i) + 1.f));
  }
}

namespace {

/// A cluster of two workers, of which only the first is there.
struct one_of_two {
  const testing::reserved_address missing;
  cluster_spec spec;
  std::unique_ptr<server> first;

  one_of_two() {
    const int here = listen_socket("localhost:0");
    spec = {{"worker", {address_of_socket(here), missing.text}}};
    first = std::make_unique<server>(spec, "worker", 0, server_options{.listen_fd = here});
  }
};

}  // namespace

TEST_CASE("planning for a missing task does not block other clients") {
  const one_of_two c;
  testing::raw_caller client(c.spec.address("worker", 0), "client");
  const auto session = client.open_session();
  graph own;
  auto in_own = as_default(own);
  output there, here;
  if (auto far = on(device("/job:worker/task:1")))
    there = any_tensor(identity(constant(1.f))).handle();
  if (auto near = on(device("/job:worker/task:0")))
    here = any_tensor(identity(constant(2.f))).handle();
  std::vector<std::shared_ptr<pending>> waiting;
  for (int i = 0; i < 1100; ++i)
    waiting.push_back(
        client.to->call(wire::pack(wire::make_plan{session, 0s, flatten({&there, 1}, {})})));
  const auto plan = wire::unpack<wire::plan_made>(client.answer(
      client.to->call(wire::pack(wire::make_plan{session, 0s, flatten({&here, 1}, {})}))));
  const auto values = wire::unpack<wire::values>(client.answer(
      client.to->call(wire::pack(wire::run_plan{session, plan.plan, 0s, false, {}}))));
  REQUIRE(values.tensors.size() == 1);
  CHECK(values.tensors[0] == any_array::scalar(2.f));
  for (const auto& w : waiting) CHECK_FALSE(w->done());
  // The task comes up at last, and all plans are made.
  server second(c.spec, "worker", 1, {});
  for (const auto& w : waiting) CHECK(wire::unpack<wire::plan_made>(client.answer(w)).plan != 0);
}

namespace {

/// Sent by a peer that ignores the limits.
message without_credit(wire::tensors&& values) {
  message m = wire::pack(std::move(values));
  m.takes_credit = false;
  return m;
}

}  // namespace

TEST_CASE("the state that an authenticated peer can make a task keep is limited") {
  local_cluster c{{"worker", 1}};
  testing::raw_caller client(c, "client");
  SUBCASE("sessions of a client") {
    for (std::size_t i = 0; i < client_sessions::most_of_connection; ++i) client.open_session();
    const auto o = client.outcome(wire::pack(wire::open_session{}));
    CHECK(o.code == errc::resource_exhausted);
    CHECK(o.says("a client has at most 1024 sessions"));
  }
  SUBCASE("steps of a session that never begin") {
    for (std::uint64_t step = 1; step <= worker::most_steps + 1; ++step)
      client.to->post(without_credit({77, step, {1}, {any_array::scalar(1.f)}}));
    plan::part nothing;
    nothing.task = intern(task_name("worker", 0));
    client.to->post(wire::pack(wire::register_part{77, 1, nothing, {}}));
    const auto o = client.outcome(wire::pack(wire::run_part{77, worker::most_steps + 1, 1}));
    CHECK(o.code == errc::resource_exhausted);
    CHECK(o.says("a session has at most 65536 unfinished steps"));
    const auto other = client.open_session();
    CHECK(client.outcome(wire::pack(wire::cluster_devices{other})).code == errc{});
  }
  SUBCASE("sessions that are never opened") {
    for (std::uint64_t session = 1; session <= worker::most_sessions; ++session)
      client.to->post(without_credit({session, 1, {1}, {any_array::scalar(1.f)}}));
    const auto o =
        client.outcome(wire::pack(wire::tensors{1'000'000, 1, {1}, {any_array::scalar(1.f)}}));
    CHECK(o.code == errc::resource_exhausted);
    CHECK(o.says("a connection has at most 4096 sessions"));
  }
}

TEST_CASE("the calls of a client that are not answered yet are limited") {
  const one_of_two c;
  testing::raw_caller client(c.spec.address("worker", 0), "client");
  const auto session = client.open_session();
  std::vector<std::shared_ptr<pending>> waiting;
  for (std::size_t i = 0; i < connection::most_calls; ++i)
    waiting.push_back(client.to->call(wire::pack(wire::cluster_devices{session})));
  const auto o = client.outcome(wire::pack(wire::devices{}));
  CHECK(o.code == errc::resource_exhausted);
  CHECK(o.says("client at "));
  CHECK(o.says(" has 65536 calls of "));
  // The others do not notice, and those that are answered do not count any more.
  testing::raw_caller other(c.spec.address("worker", 0), "client");
  CHECK(other.outcome(wire::pack(wire::devices{})).code == errc{});
  server second(c.spec, "worker", 1, {});
  for (const auto& w : waiting) client.answer(w);
  CHECK(client.outcome(wire::pack(wire::devices{})).code == errc{});
}

TEST_CASE("a client that does not read its answers gets no more of them") {
  constexpr std::int64_t megabyte = 1 << 20;
  local_cluster c{{"worker", 1}};
  testing::raw_caller client(c, "client");
  const auto session = client.open_session();
  graph own;
  auto in_own = as_default(own);
  variable<float, megabyte> v("large", zeros());
  const output value = any_tensor(v).handle(), other = any_tensor(v + 1.f).handle();
  {
    deft::session s(c.target("worker", 0));
    s.run(initialize_all());
  }
  const auto make_plan = [&](const output& fetch) {
    return wire::unpack<wire::plan_made>(
        client.answer(wire::pack(wire::make_plan{session, 0s, flatten({&fetch, 1}, {})})));
  };
  const auto plan = make_plan(value), next = make_plan(other);
  if (credentials::of_environment().has_tls()) return;  // the next line has none
  const auto deaf = std::make_shared<detail::connection_state>(
      testing::bare_socket(c.spec().address("worker", 0)).stream(), wire_limits());
  const std::string task = "/job:worker/replica:0/task:0";  // signals are for tasks
  const process_identity self{task, testing::raw_caller::incarnation_of_tasks, {}, {}};
  testing::shake_hands(deaf, self);
  constexpr std::uint64_t runs = 300;  // of 4 MB each
  for (std::uint64_t i = 1; i <= runs; ++i) {
    message m = wire::pack(wire::run_plan{session, plan.plan, 0s, false, {}});
    m.id = i;
    deaf->send(m);
  }
  deaf->send(wire::pack(wire::set_signal{"all asked"}));
  // Others are served meanwhile, and afterwards: the first run of a plan begins after all that were
  // asked for before.
  testing::raw_caller waits(c, task);
  waits.answer(wire::pack(wire::wait_signal{"all asked"}));
  CHECK(client.outcome(wire::pack(wire::run_plan{session, next.plan, 0s, false, {}})).code ==
        errc{});
  int refused = 0;
  message answer;
  for (std::uint64_t i = 1; i <= runs; ++i) {
    REQUIRE(deaf->receive(answer, client.soon()));
    if (answer.kind != message_kind::error) continue;
    ++refused;
    const error e = decode_error(answer);
    CHECK(e.code() == errc::resource_exhausted);
    CHECK(e.message().find("the client has not read ") != std::string::npos);
  }
  CHECK(refused > 0);
  CHECK(refused < 60);
}

TEST_CASE("a caller that calls itself a task must say which process of that task it is") {
  local_cluster c{{"worker", 2}};
  const std::string at = c.spec().address("worker", 0), task = "/job:worker/replica:0/task:1";
  const auto o = outcome_of([&] { testing::raw_caller(at, task, 0); });
  CHECK(o.code == errc::invalid_argument);
  CHECK(o.says(task + " does not say which process of that task it is"));
  testing::raw_caller one(at, task, 1);
  channel_group other({{task, 2, {}, credentials::of_environment()}, {}});
  CHECK(outcome_of([&] { other.connect(at, deadline_in(100ms)); }).code == errc::unavailable);
  testing::raw_caller again(at, task, 1);
}

TEST_CASE("the longest timeouts count as none, and a session's timeout limits connecting") {
  local_cluster c{{"worker", 1}};
  const std::string address = c.spec().address("worker", 0);
  const std::string target = "deft://localhost" + address.substr(address.rfind(':'));
  constexpr auto longest = std::chrono::nanoseconds::max();
  for (const session_options& o :
       {session_options{.timeout = longest}, session_options{.connect_timeout = longest}}) {
    session s(target, o);
    CHECK(s.run(constant(1.f) + 1.f) == 2.f);
    CHECK(s.run(run_options{.timeout = longest}, constant(2.f) + 1.f) == 3.f);
  }
  const testing::reserved_address dead;
  CHECK(outcome_of([&] { session s("deft://" + dead.text, {.timeout = 50ms}); }).code ==
        errc::deadline_exceeded);
}

TEST_CASE("runs that wait on their task hold no thread of it") {
  constexpr int many = 1'100;  // more than there are threads for background work
  local_cluster c{{"worker", 1}};
  testing::raw_caller client(c, "client"), other(c, "client");
  auto plan_of = [](testing::raw_caller& who, std::uint64_t session, const output& fetched) {
    return wire::unpack<wire::plan_made>(
               who.answer(wire::pack(wire::make_plan{session, 0s, flatten({&fetched, 1}, {})})))
        .plan;
  };
  graph own;
  auto in_own = as_default(own);
  // A round of replicas that never come.
  op::await_replicas waits;
  waits.barrier = "round";
  waits.needed = waits.total = 2;
  const auto session = client.open_session(), theirs = other.open_session();
  const auto waiting = plan_of(client, session, {add_node(own, waits), 1});
  const auto quick = plan_of(other, theirs, any_tensor(constant(1.f)).handle());
  std::vector<std::shared_ptr<pending>> calls;
  for (int i = 0; i < many; ++i)
    calls.push_back(
        client.to->call(wire::pack(wire::run_plan{.session = session, .plan = waiting})));
  client.answer(wire::pack(wire::cancel_run{session, 0}));  // so all of them have been read
  CHECK(other.outcome(wire::pack(wire::run_plan{.session = theirs, .plan = quick})).code == errc{});
  CHECK(std::ranges::none_of(calls, [](auto& p) { return p->done(); }));
  SUBCASE("until their session is closed") {
    client.to->post(wire::pack(wire::close_session{session}));
  }
  SUBCASE("until the task ends") { c.kill("worker", 0); }
  CHECK(std::ranges::none_of(calls, [&](auto& p) { return client.outcome(p).code == errc{}; }));
}

TEST_CASE("more feeds than a message holds are refused before it is sent") {
  local_cluster c{{"worker", 2}};
  graph own;
  auto in = as_default(own);
  const std::string address = c.spec().address("worker", 0);
  std::vector<placeholder<float>> x;
  std::vector<feed_value> values;
  constexpr std::size_t most = 65'536;
  auto there = on(device("/job:worker/task:1"));
  for (std::size_t i = 0; i <= most; ++i) {
    x.emplace_back(str("x", i));
    values.push_back(x.back() = 1.f);
  }
  const std::vector<any_tensor> all(x.begin(), x.end());
  const any_tensor sum = stack(axes{0}, all);
  for (const std::string& at :
       {c.target("worker", 0), "deft://localhost" + address.substr(address.rfind(':'))}) {
    CAPTURE(at);
    session s(at);
    const auto o = outcome_of([&] { s.run(sum, values); });
    CAPTURE(o);
    CHECK(o.code == errc::invalid_argument);
    CHECK(o.says("a run feeds at most 65536 values to another task, not 65537"));
    CHECK(s.run(x[0], x[0] = 2.f) == 2.f);
  }
}

TEST_CASE("an operation of one name with another body is another operation") {
  placeholder<float> x("x");
  CHECK(session().run(testing::make_swish(x), x = 0.f) == 0.f);
  const auto all = catalog_list();
  const op_def& def = *find_op("test_swish");
  const auto own = std::ranges::find_if(
      all, [](const std::string& entry) { return entry.starts_with("test_swish/1/"); });
  REQUIRE(own != all.end());
  peer_info peer;
  CHECK(peer.knows(def));
  peer.same_catalog = false;
  peer.lacks = {*own};
  CHECK(!peer.knows(def));
  CHECK(peer.why_unknown(def).starts_with("does not have version 1 of this operation"));
  peer.offers = {"test_swish/1/77"};
  CHECK(!peer.knows(def));
  CHECK(peer.why_unknown(def).starts_with("has another body of this operation"));
  // Of an algorithm, inputs and attributes are compared.
  static_cast<void>(testing::make_running_sum(placeholder<float, 3>("row")));
  const op_def& sum = *find_op("test_running_sum");
  CHECK(std::ranges::any_of(catalog_list(), [](const std::string& entry) {
    return entry.starts_with("test_running_sum/1/");
  }));
  peer.lacks = catalog_list();
  peer.offers = {"test_running_sum/1/77"};
  CHECK(!peer.knows(sum));
  CHECK(peer.why_unknown(sum).starts_with("has another body of this operation"));
}
