// SPDX-License-Identifier: Apache-2.0
// A forked child cannot use deft, and does not disturb this process.
#include <sys/wait.h>
#include <unistd.h>

#include <deft/core/thread.hpp>

#include "sessions.hpp"

using namespace deft;
using testing::outcome_of;
using testing::own_graph;

namespace {

/// The result of `f` in a forked child; -1 if that does not end by itself.
template <class F>
int in_child(F f) {
  const pid_t child = fork();
  if (child == 0) _exit(f());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool is_refused(const testing::outcome& o) {
  return o.code == errc::failed_precondition && o.says("fork before the first session");
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "after fork() every use is refused with a message, and none hangs") {
  local_cluster c{{"ps", 1}, {"worker", 1}};
  const auto address = c.spec().address("worker", 0);
  auto v = on(device("/job:ps/task:0"), [] { return variable<float>("v", 3.f); });
  auto up = v.assign_add(1.f);
  auto local = std::make_unique<session>();
  // By another name of this host, so that it is not recognized as a server of this process.
  auto remote = std::make_unique<session>("deft://localhost" + address.substr(address.rfind(':')));
  auto master = std::make_unique<session>(c.target("worker", 0));
  remote->run(initialize_all());
  auto sum = constant(1.f) + 2.f;
  CHECK(local->run(sum) == 3);
  {
    auto step = std::make_unique<decltype(remote->prepare(up))>(remote->prepare(up));
    (*step)();
    const int refused = in_child([&] {
      int n = 0;
      n += is_refused(outcome_of([&] { local->run(sum); }));
      n += is_refused(outcome_of([&] { remote->run(v); }));
      n += is_refused(outcome_of([&] { master->run(v); }));
      n += is_refused(outcome_of([&] { (*step)(); }));
      n += is_refused(outcome_of([&] { session(); }));
      n += is_refused(outcome_of([&] { session(c.target("worker", 0)); }));
      n += is_refused(outcome_of([&] { server::local(); }));
      // Destroying them here does not end those of the other process.
      step.reset();
      local.reset();
      remote.reset();
      master.reset();
      { const local_cluster gone = std::move(c); }
      return n;
    });
    CHECK(refused == 7);
    (*step)();
  }
  for (int i = 0; i < 10; ++i) remote->run(up);
  CHECK(master->run(v) == 15);
  CHECK(local->run(sum) == 3);
}
