// SPDX-License-Identifier: Apache-2.0
// How runs of a session fail, and what their errors say.
#include <algorithm>
#include <deft/session/session_impl.hpp>
#include <thread>

#include "sessions.hpp"

using namespace deft;
using namespace deft::ext;
using testing::outcome_of;
using testing::own_graph;
using testing::usual_device;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(own_graph, "an empty fetch is named by its place among the arguments") {
  session s;
  placeholder<float> x("x");
  tensor<float> empty;
  std::vector<any_tensor> list{x, any_tensor()};
  auto says = [](auto f, const char* text) {
    auto o = outcome_of(f);
    CAPTURE(o);
    CHECK(o.code == errc::failed_precondition);
    CHECK(o.says(text));
  };
  says([&] { s.run(x, empty, x = 1.f); }, "[run] argument 2 is empty");
  says([&] { s.run(x = 1.f, operation()); }, "[run] argument 2 is empty");
  says([&] { s.run(list, x = 1.f); }, "[run] element 2 of argument 1 is empty");
  says([&] { s.prepare(x, empty, feeds(x)); }, "[prepare] argument 2 is empty");
  says([&] { s.prepare(list); }, "[prepare] element 2 of argument 1 is empty");
}

TEST_CASE_FIXTURE(own_graph,
                  "a session of one process says how to reach the job that is asked for") {
  auto asked = [&](const char* where) {
    const any_tensor x = on(device(where), [] { return any_tensor(identity(constant(1))); });
    session alone({.fold = false});
    return outcome_of([&] { alone.run(x); });
  };
  for (const char* where : {"/job:ps/task:0", "/job:worker"}) {
    const auto o = asked(where);
    CAPTURE(o);
    CHECK(o.code == errc::invalid_argument);
    CHECK(
        o.says("; this session is of this process alone: session s(self), of a task, or "
               "session(target) reaches the cluster, node "));
    CHECK(!o.says("allow_soft_placement"));
  }
  const auto o = asked("/job:localhost/task:3");
  CAPTURE(o);
  CHECK(o.says("session_options.allow_soft_placement would place it on "));
}

TEST_CASE_FIXTURE(own_graph, "what a run advises depends on the reason of its error alone") {
  session s;
  placeholder<float> x("x");
  variable<float> w("w", 0.f);
  const auto advised = [&](errc code, error_reason reason) {
    const std::vector<output> fetches{any_tensor(w).handle()};
    return outcome_of([&] {
             try {
               throw error(code, reason, "in other words", "w", {"m.cpp", 3});
             } catch (const error& e) {
               s.impl().rethrow(e, fetches, {"run.cpp", 7});
             }
           })
        .message;
  };
  const std::string end = " (run at run.cpp:7), node \"w\" at m.cpp:3";
  CHECK(advised(errc::invalid_argument, error_reason::not_fed) ==
        "in other words: feed one, as in s.run(fetch, placeholder = value)" + end);
  CHECK(advised(errc::invalid_argument, error_reason::not_needed) == "in other words" + end);
  CHECK(advised(errc::failed_precondition, error_reason::uninitialized)
            .starts_with("in other words; run initialize_all(), "));
  CHECK(advised(errc::failed_precondition, error_reason::none) ==
        "in other words, node \"w\" at m.cpp:3");

  // An error keeps its reason on its way from a worker to the master, and from there to a client.
  local_cluster c{{"worker", 2}};
  const std::string address = c.spec().address("worker", 0);
  // By another name of this host it is not recognized as a server of this process.
  session remote("deft://localhost" + address.substr(address.rfind(':')));
  for (const std::string task : {"0", "1"}) {
    CAPTURE(task);
    auto there = on(device("/job:worker/task:" + task));
    const variable<float> v("v" + task, 0.f);
    auto o = outcome_of([&] { remote.run(v); });
    CAPTURE(o);
    CHECK(o.reason == error_reason::uninitialized);
    CHECK(o.says("is not initialized; run initialize_all(), "));
    o = outcome_of([&] { remote.run(x + 1.f); });
    CHECK(o.reason == error_reason::not_fed);
    CHECK(o.says("none was fed: feed one, "));
  }
}

TEST_CASE_FIXTURE(own_graph, "an error that is not that of a node has the line of the run") {
  session s;
  placeholder<float, dyn> x("x");
  variable<float> w("w", 0.f);
  std::string said;
  const auto error_of = [&](auto f) { said = testing::error_of(f); };
  const auto at = [](unsigned line) { return str(" at test_session_errors.cpp:", line); };
  const ndarray<float, dyn, dyn> square(2, 2);
  const any_array matrix = square.array();
  error_of([&] { s.run(x, x = matrix); });
  CHECK(said.find(" (run" + at(__LINE__ - 1) + "), node \"x\"") != std::string::npos);
  error_of([&] { s.run(x); });
  CHECK(said.find("placeholder = value) (run" + at(__LINE__ - 1)) != std::string::npos);
  CHECK(said.find("none was fed: feed one, as in s.run(fetch, ") != std::string::npos);
  error_of([&] { s.run(w + 1.f, x = {1, 2}); });
  CHECK(said.find("needs the tensor that is fed (run" + at(__LINE__ - 1)) != std::string::npos);
  error_of([&] { s.run(w); });
  CHECK(said.find("optimizers included (run" + at(__LINE__ - 1)) != std::string::npos);
  error_of([&] { s.run(x + w, x = {1, 2}, x = {1, 2}); });
  CHECK(said.ends_with(at(__LINE__ - 1)));
  const any_tensor empty;
  error_of([&] { s.run(x, empty, x = {1, 2}); });
  CHECK(said.ends_with(at(__LINE__ - 1)));
  error_of([&] { s.prepare(x, empty); });
  CHECK(said.ends_with(at(__LINE__ - 1)));
  s.close();
  error_of([&] { s.run({}, x, x = {1, 2}); });
  CHECK(said == "failed_precondition: the session is closed" + at(__LINE__ - 1));
  error_of([&] { s.prepare(x, feeds(x)); });
  CHECK(said == "failed_precondition: the session is closed" + at(__LINE__ - 1));
}

TEST_CASE_FIXTURE(own_graph, "an error names node, source line and device") {
  session s;
  placeholder<float, dyn, 3> x("x");
  placeholder<float, dyn, 3> y("y");
  unsigned line = __LINE__ + 1;
  tensor<float, dyn, dyn> z = matmul(x, transpose(y));
  auto wide = reshape(x, shape<2, 3>);
  auto o = outcome_of([&] { s.run(wide, x = ndarray<float, 1, 3>{{1, 2, 3}}); });
  CAPTURE(o);
  CHECK(o.code == errc::invalid_argument);
  CHECK(!o.node.empty());
  CHECK(o.device == "/job:localhost/replica:0/task:0/" + usual_device());
  CHECK(o.line == line + 1);
  CHECK(o.says("test_session_errors.cpp"));
  static_cast<void>(z);
}

TEST_CASE_FIXTURE(own_graph, "a placeholder that was not fed, and a feed that is not needed") {
  session s;
  placeholder<float> x("x"), other("other");
  auto o = outcome_of([&] { s.run(x + 1.f); });
  CAPTURE(o);
  CHECK(o.code == errc::invalid_argument);
  CHECK(o.node == "x");
  o = outcome_of([&] { s.run(x, x = 1.f, other = 2.f); });
  CAPTURE(o);
  CHECK(o.code == errc::invalid_argument);
  CHECK(o.node == "other");
  o = outcome_of([&] { s.run(x, x = 1.f, x = 2.f); });
  CHECK(o.code == errc::invalid_argument);
  CHECK(o.says("is fed twice"));
}

TEST_CASE_FIXTURE(own_graph, "a timeout ends a step of this process") {
  session s;
  // 4,000 products that depend on each other take seconds without the limit.
  tensor<float, 256, 256> a = broadcast_to(constant(0.001f), shape<256, 256>);
  tensor<float, 256, 256> b = a;
  for (int i = 0; i < 4000; ++i) b = matmul(b, a);
  placeholder<float, 256, 256> x("x");
  session slow({.fold = false});
  auto o = outcome_of([&] { slow.run(run_options{.timeout = 50ms}, b); });
  CAPTURE(o);
  CHECK(o.code == errc::deadline_exceeded);
  CHECK(o.says("the step timed out after 50 ms on /job:localhost/replica:0/task:0"));
  // The session can still be used.
  CHECK(slow.run(run_options{.timeout = 1min}, constant(1)) == 1);
}

TEST_CASE_FIXTURE(own_graph, "cancel and close end the runs under way") {
  tensor<float, 256, 256> a = broadcast_to(constant(0.001f), shape<256, 256>);
  tensor<float, 256, 256> b = a;
  for (int i = 0; i < 4000; ++i) b = matmul(b, a);
  session s({.fold = false});
  auto step = s.prepare(b);
  cancel_source cancel;
  testing::outcome o;
  std::thread runner([&] { o = outcome_of([&] { step(run_options{.cancel = cancel.token()}); }); });
  cancel.cancel();
  runner.join();
  CAPTURE(o);
  CHECK(o.code == errc::cancelled);
  CHECK(o.says("the run was cancelled"));

  std::atomic<bool> begun{false};
  std::thread closed([&] {
    begun = true;
    o = outcome_of([&] { step(); });
  });
  while (!begun) std::this_thread::yield();
  s.close();
  closed.join();
  CAPTURE(o);
  CHECK((o.code == errc::cancelled || o.code == errc::failed_precondition));
  o = outcome_of([&] { s.run(constant(1)); });
  CHECK(o.code == errc::failed_precondition);
  CHECK(o.says("the session is closed"));
  CHECK(outcome_of([&] { step(); }).code == errc::failed_precondition);
}

TEST_CASE_FIXTURE(own_graph, "a tensor larger than memory is refused, and the session goes on") {
  session s;
  placeholder<std::int32_t, dyn> x("x");
  any_tensor huge = any_tensor(random_uniform(shape<1 << 20, 1 << 16, 256>));  // 64 TB
  auto o = outcome_of([&] { s.run(huge); });
  CAPTURE(o);
  CHECK(o.code == errc::resource_exhausted);
  CHECK(s.run(constant(1)) == 1);
}

TEST_CASE_FIXTURE(own_graph, "malformed targets are refused with a message") {
  for (const char* target : {"localhost:2222", "grpc://localhost:2222", "deft://localhost", ""}) {
    auto o = outcome_of([&] { session s{std::string(target)}; });
    CAPTURE(target);
    CHECK(o.code == errc::invalid_argument);
    CHECK(o.says("is not of the form deft://host:port"));
  }
}
