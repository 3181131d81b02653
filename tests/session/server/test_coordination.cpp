// SPDX-License-Identifier: Apache-2.0
// Signals between tasks, and the end of a job.
#include <deft/session/server/coordination.hpp>
#include <thread>

#include "session/raw_caller.hpp"

using namespace deft;
using testing::is_loss;
using testing::outcome_of;
using namespace std::chrono_literals;

TEST_CASE("a server that is stopped twice, or while others wait, ends them all") {
  auto one = std::make_unique<server>(server::local());
  std::thread joining([&] { one->join(); });
  testing::outcome o;
  std::thread waiting([&] {
    o = outcome_of([&] { one->coordination().wait(task_name("localhost", 0), "never", 1min); });
  });
  one->stop();
  one->stop();
  joining.join();
  waiting.join();
  CAPTURE(o);
  CHECK(o.code == errc::unavailable);
}

TEST_CASE("signals cross tasks, and who waits in vain is told for what") {
  local_cluster c{{"worker", 2}};
  auto& first = c.at("worker", 0);
  auto& second = c.at("worker", 1);
  auto o = outcome_of([&] { second.coordination().wait(task_name("worker", 0), "late", 50ms); });
  CAPTURE(o);
  CHECK(o.code == errc::deadline_exceeded);
  CHECK(o.says("/job:worker/replica:0/task:0"));
  CHECK(o.says("\"late\""));
  std::thread waiting([&] { second.coordination().wait(task_name("worker", 0), "ready", 1min); });
  first.coordination().signal("ready");
  waiting.join();
  second.coordination().wait(task_name("worker", 0), "ready", 1min);
  first.coordination().wait(task_name("worker", 0), "ready", 1min);
  first.coordination().signal("late");  // its call is there by now, before that for "ready"
  std::thread lost([&] {
    o = outcome_of([&] { second.coordination().wait(task_name("worker", 0), "never", 1min); });
  });
  while (first.coordination().waiting() == 0) std::this_thread::yield();
  c.kill("worker", 0);
  lost.join();
  CAPTURE(o);
  CHECK(is_loss(o.code));
}

TEST_CASE("a parameter server ends once every worker was seen and is done") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  std::thread joining([&] { c.at("ps", 0).join(); });
  c.at("worker", 0).done();
  c.at("worker", 1).done();
  joining.join();

  // One that was lost counts as done once it was away for long enough.
  local_cluster d({{"ps", 1}, {"worker", 1}}, {.away = 10ms});
  d.at("worker", 0).coordination().signal(task_name("ps", 0), "hello", 1min);
  std::thread waits([&] { d.at("ps", 0).join(); });
  d.kill("worker", 0);
  waits.join();
}

TEST_CASE("signals are for the tasks of a cluster, and what one may hold is bounded") {
  local_cluster c{{"worker", 2}};
  testing::raw_caller stranger(c, "client"), task(c, "/job:worker/replica:0/task:1");
  CHECK(stranger.outcome(wire::pack(wire::set_signal{"ready"})).code == errc::permission_denied);
  CHECK(stranger.outcome(wire::pack(wire::wait_signal{"ready"})).code == errc::permission_denied);
  CHECK(task.outcome(wire::pack(wire::set_signal{std::string(257, 'a')})).code ==
        errc::invalid_argument);
  for (int i = 0; i < 1024; ++i) task.to->call(wire::pack(wire::wait_signal{str("wait ", i)}));
  const auto o = task.outcome(wire::pack(wire::wait_signal{"one more"}));
  CHECK(o.code == errc::resource_exhausted);
  CHECK(o.says("/job:worker/replica:0/task:1 waits for 1024 signals"));
  // The others do not notice.
  testing::raw_caller other(c, "/job:worker/replica:0/task:1");
  auto waits = other.to->call(wire::pack(wire::wait_signal{"one more"}));
  CHECK(other.outcome(wire::pack(wire::set_signal{"one more"})).code == errc{});
  CHECK(other.links.wait_for(*waits, deadline_in(60s)));
  waits->take();
}

TEST_CASE("waits of a connection that has ended are forgotten") {
  local_cluster c{{"worker", 2}};
  auto& signals = c.at("worker", 0).coordination();
  {
    testing::raw_caller task(c, "/job:worker/replica:0/task:1");
    task.to->call(wire::pack(wire::wait_signal{"never"}));
    while (signals.waiting() == 0) std::this_thread::yield();
  }
  while (signals.waiting() != 0) std::this_thread::yield();
}
