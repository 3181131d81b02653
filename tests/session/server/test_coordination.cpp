// SPDX-License-Identifier: Apache-2.0
// Signals between tasks, and when a job is done.
#include <deft/session/server/coordination.hpp>
#include <future>
#include <thread>

#include "reserved_address.hpp"
#include "session/raw_caller.hpp"
#include "session/together.hpp"

using namespace deft;
using namespace deft::ext;
using testing::is_loss;
using testing::log_lines;
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

TEST_CASE("signals reach other tasks, and a wait that times out names its signal") {
  local_cluster c{{"worker", 2}};
  auto& first = c.at("worker", 0);
  auto& second = c.at("worker", 1);
  auto o = outcome_of([&] { second.coordination().wait(task_name("worker", 0), "late", 50ms); });
  CAPTURE(o);
  CHECK(o.code == errc::deadline_exceeded);
  CHECK(o.says(
      "timed out after 50 ms waiting for the signal \"late\" of /job:worker/replica:0/task:0"));
  std::thread waiting([&] { second.coordination().wait(task_name("worker", 0), "ready", 1min); });
  first.coordination().signal("ready");
  waiting.join();
  second.coordination().wait(task_name("worker", 0), "ready", 1min);
  first.coordination().wait(task_name("worker", 0), "ready", 1min);
  first.coordination().signal("late");  // its call has arrived by now, before the one for "ready"
  std::thread lost([&] {
    o = outcome_of([&] { second.coordination().wait(task_name("worker", 0), "never", 1min); });
  });
  while (first.coordination().waiting() == 0) std::this_thread::yield();
  c.kill("worker", 0);
  lost.join();
  CAPTURE(o);
  CHECK(is_loss(o.code));
}

TEST_CASE("a parameter server ends once every worker has connected and is done") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  std::thread joining([&] { c.at("ps", 0).join(); });
  c.at("worker", 0).done();
  c.at("worker", 1).done();
  joining.join();
}

TEST_CASE("a parameter server whose worker was lost does not end as if it were done") {
  local_cluster c({{"ps", 1}, {"worker", 2}}, {.away = 10ms});
  c.at("worker", 0).coordination().signal(task_name("ps", 0), "hello", 1min);
  c.at("worker", 1).done();
  testing::outcome o;
  std::thread waits([&] { o = outcome_of([&] { c.at("ps", 0).join(); }); });
  c.kill("worker", 0);
  waits.join();
  CAPTURE(o);
  CHECK(o.code == errc::unavailable);
  CHECK(
      o.says("/job:ps/replica:0/task:0 ends before its job: /job:worker/replica:0/task:0 was "
             "lost and has not come back for 10 ms"));
  CHECK(!o.says("task:1"));
}

TEST_CASE("workers that have been missing for 10 s are named in the log") {
  local_cluster c{{"ps", 1}, {"worker", 3}};
  c.at("worker", 0).coordination().signal(task_name("ps", 0), "hello", 1min);
  c.at("worker", 1).coordination().signal(task_name("ps", 0), "hello", 1min);
  c.kill("worker", 0);
  log_lines log;
  std::thread joining([&] { c.at("ps", 0).join(); });
  std::string said;
  while (said.find("task:0, which was lost") == said.npos || said.find("task:2") == said.npos) {
    said += join(log.take(), "\n");
    std::this_thread::yield();
  }
  INFO(said);
  CHECK(said.find("/job:ps/replica:0/task:0 is still waiting for ") != said.npos);
  CHECK(said.find("/job:worker/replica:0/task:1") == said.npos);
  c.at("ps", 0).stop();
  joining.join();
}

TEST_CASE("a worker that comes back is waited for, and its end is not forgotten") {
  local_cluster c({{"ps", 1}, {"worker", 1}}, {.away = 1h});
  c.at("worker", 0).coordination().signal(task_name("ps", 0), "hello", 1min);
  std::thread joining([&] { c.at("ps", 0).join(); });
  c.restart("worker", 0);
  c.at("worker", 0).done();
  joining.join();
  c.kill("worker", 0);
  c.at("ps", 0).join();
}

TEST_CASE("a parameter server that is told to end waits for the workers that are connected") {
  local_cluster c({{"ps", 1}, {"worker", 3}}, {.away = 1h});
  auto& ps = c.at("ps", 0);
  for (int i : {0, 1})
    c.at("worker", i).coordination().signal(task_name("ps", 0), str("hello ", i), 1min);
  c.at("worker", 1).done();
  std::atomic<bool> ended{false};
  std::thread joining([&] {
    ps.join();
    ended = true;
  });
  CHECK(ps.coordination().end_join(1h));
  c.at("worker", 0).coordination().signal(task_name("ps", 0), "a last step", 1min);
  CHECK(!ended);
  c.at("worker", 0).done();  // the third never came
  joining.join();
  // Nor for ever.
  local_cluster d({{"ps", 1}, {"worker", 1}}, {.away = 1h});
  d.at("worker", 0).coordination().signal(task_name("ps", 0), "hello", 1min);
  d.at("ps", 0).coordination().end_join(1ms);
  d.at("ps", 0).join();
  CHECK(!d.at("worker", 0).coordination().end_join(1ms));  // it does not serve
}

TEST_CASE("a worker serves until the others are done, and jobs have any names") {
  local_cluster c{{"ps", 1}, {"stage", 2}, {"worker", 1}};
  std::thread ps([&] { c.at("ps", 0).join(); });
  std::vector<std::thread> serving;
  for (int i : {0, 1})
    serving.emplace_back([&, i] {
      c.at("stage", i).join();
      c.at("stage", i).done();
    });
  c.at("worker", 0).done();
  for (auto& t : serving) t.join();
  ps.join();
}

TEST_CASE("a worker that serves does not wait without end for one that was lost") {
  local_cluster c({{"stage", 1}, {"worker", 2}}, {.away = 10ms});
  c.at("worker", 0).coordination().signal(task_name("stage", 0), "hello", 1min);
  c.at("worker", 1).done();
  testing::outcome o;
  std::thread serves([&] { o = outcome_of([&] { c.at("stage", 0).join(); }); });
  c.kill("worker", 0);
  serves.join();
  CAPTURE(o);
  CHECK(o.code == errc::unavailable);
  CHECK(
      o.says("/job:stage/replica:0/task:0 ends before its job: /job:worker/replica:0/task:0 was "
             "lost and has not come back for 10 ms"));
  CHECK(!o.says("/job:worker/replica:0/task:1"));
}

TEST_CASE("a worker that serves does not wait for another that did, and was lost") {
  local_cluster c({{"worker", 3}}, {.away = 0ms});
  auto& here = c.at("worker", 0);
  {
    testing::raw_caller serving(c, "/job:worker/replica:0/task:1");
    REQUIRE(serving.outcome(wire::pack(wire::done{true})).code == errc{});
  }
  while (here.coordination().members()[1].connected) std::this_thread::yield();
  testing::outcome o;
  std::thread serves([&] { o = outcome_of([&] { here.join(); }); });
  c.at("worker", 2).done();
  serves.join();
  CAPTURE(o);
  CHECK(o.code == errc{});
}

TEST_CASE("others are told at once that a task has ended, and do not wait for it") {
  local_cluster c{{"worker", 2}};
  graph g;
  auto in = as_default(g);
  const auto far = on(device("/job:worker/task:1"), [] { return identity(constant(3)); });
  c.at("worker", 1).done();
  {
    session s(c.target("worker", 0), {.fold = false});
    CHECK(s.run(far) == 3);  // it is still there
  }
  c.kill("worker", 1);
  session s(c.target("worker", 0), {.fold = false, .connect_timeout = 1h});
  const auto o = outcome_of([&] { s.run(far); });
  CAPTURE(o);
  CHECK(o.code == errc::unavailable);
  CHECK(o.says("/job:worker/replica:0/task:1 has ended: it said that it was done"));
  // Another process of that name is waited for again.
  c.restart("worker", 1);
  c.at("worker", 1).coordination().signal(task_name("worker", 0), "there", 1min);
  session again(c.target("worker", 0), {.fold = false});
  CHECK(again.run(far) == 3);
}

TEST_CASE("only tasks of a cluster may use signals, and their number is limited") {
  local_cluster c{{"worker", 2}};
  testing::raw_caller stranger(c, "client"), task(c, "/job:worker/replica:0/task:1");
  CHECK(stranger.outcome(wire::pack(wire::set_signal{"ready"})).code == errc::permission_denied);
  CHECK(stranger.outcome(wire::pack(wire::wait_signal{"ready"})).code == errc::permission_denied);
  CHECK(task.outcome(wire::pack(wire::set_signal{std::string(257, 'a')})).code ==
        errc::invalid_argument);
  for (int i = 0; i < 1024; ++i) task.to->call(wire::pack(wire::wait_signal{str("wait ", i)}));
  const auto o = task.outcome(wire::pack(wire::wait_signal{"one more"}));
  CHECK(o.code == errc::resource_exhausted);
  CHECK(o.says("/job:worker/replica:0/task:1 already waits for 1024 signals"));
  // The others do not notice.
  testing::raw_caller other(c, "/job:worker/replica:0/task:1");
  auto waits = other.to->call(wire::pack(wire::wait_signal{"one more"}));
  CHECK(other.outcome(wire::pack(wire::set_signal{"one more"})).code == errc{});
  CHECK(other.links.wait_for(*waits, deadline_in(60s)));
  waits->take();
}

TEST_CASE("a task has a limited number of signals, and those that are cleared make room") {
  local_cluster c{{"worker", 2}};
  auto& signals = c.at("worker", 0).coordination();
  auto& others = c.at("worker", 1).coordination();
  const auto task = task_name("worker", 0);
  for (std::size_t i = 0; i < coordination::most_signals; ++i) signals.signal(str("signal ", i));
  for (const auto& o : {outcome_of([&] { signals.signal("one more"); }),
                        outcome_of([&] { others.signal(task, "one more", 1min); })}) {
    CHECK(o.code == errc::resource_exhausted);
    CHECK(o.says("/job:worker/replica:0/task:0 has too many signals (limit 65536)"));
  }
  CHECK_NOTHROW(signals.signal("signal 1"));  // it is set already
  signals.clear_signal("signal 0");
  CHECK_NOTHROW(others.signal(task, "one more", 1min));
  CHECK_NOTHROW(others.wait(task, "one more", 1min));
  CHECK(outcome_of([&] { others.wait(task, "signal 0", 1ms); }).code == errc::deadline_exceeded);
}

TEST_CASE("a signal wakes all that wait for it, even if it is cleared at once") {
  local_cluster c{{"worker", 2}};
  auto& signals = c.at("worker", 0).coordination();
  const auto task = task_name("worker", 0);
  std::vector<std::future<void>> waits;
  for (int i : {0, 1})
    waits.push_back(std::async(std::launch::async, [&c, &task, i] {
      c.at("worker", i).coordination().wait(task, "now", 1min);
    }));
  while (signals.waiting() < 2) std::this_thread::yield();
  signals.signal("now");
  signals.clear_signal("now");
  for (auto& w : waits) CHECK_NOTHROW(w.get());
  CHECK(signals.waiting() == 0);
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

TEST_CASE("parameter servers learn at the same time that a task is done") {
  testing::answering_together tasks("ps", 3);
  log_lines log(logging::level::info);
  tasks.here().coordination().done(60s);
  for (const auto& l : log.take()) {
    CAPTURE(l);
    CHECK(l.find("was not told") == l.npos);
  }
}

TEST_CASE("a missing parameter server does not delay the others") {
  const testing::reserved_address missing;
  const int sockets[] = {listen_socket("localhost:0"), listen_socket("localhost:0")};
  const cluster_spec spec{{"ps", {missing.text, address_of_socket(sockets[0])}},
                          {"worker", {address_of_socket(sockets[1])}}};
  server ps(spec, "ps", 1, {.listen_fd = sockets[0], .away = 1h});
  server here(spec, "worker", 0, {.listen_fd = sockets[1]});
  log_lines log(logging::level::info);
  std::thread ends([&] { here.coordination().done(1h); });
  ps.join();
  here.stop();  // ends the wait for the other task, too
  ends.join();
  const std::string said = join(log.take(), "\n");
  INFO(said);
  CHECK(said.find("/job:ps/replica:0/task:0 was not told that this task is done") != said.npos);
}

TEST_CASE("a task says that it is done until a parameter server has answered") {
  struct : connection_handler {
    void on_message(const std::shared_ptr<connection>& from, message&& m) override {
      if (++asked <= 3) return from->close();
      wire::caller(from, m.id).answer(wire::nothing());
    }
    std::atomic<int> asked{0};
  } loses;
  const int sockets[] = {listen_socket("localhost:0"), listen_socket("localhost:0")};
  const cluster_spec spec{{"ps", {address_of_socket(sockets[0])}},
                          {"worker", {address_of_socket(sockets[1])}}};
  listen_options o;
  o.fd = sockets[0];
  o.self.name = to_string(task_name("ps", 0));
  o.self.cluster = spec.entries();
  o.self.credentials = credentials::of_environment();
  const listener ps(o, loses);
  server here(spec, "worker", 0, {.listen_fd = sockets[1]});
  log_lines log(logging::level::info);
  here.coordination().done(1h);
  CHECK(loses.asked == 4);
  const std::string said = join(log.take(), "\n");
  INFO(said);
  CHECK(said.find("was not told") == said.npos);
}

TEST_CASE("members says who is connected, and who is done") {
  local_cluster c({{"ps", 1}, {"worker", 2}}, {.away = 1h});
  auto& ps = c.at("ps", 0).coordination();
  auto text = [](coordination& of) {
    return join(of.members(), " ", [](const task_state& t) {
      const device_name n = parse_device(t.name);
      return str(n.job, *n.task, t.connected ? "+" : "-", t.done ? "done" : "");
    });
  };
  CHECK(text(ps) == "ps0+ worker0- worker1-");
  auto& first = c.at("worker", 0).coordination();
  first.signal(task_name("ps", 0), "hello", 1min);
  CHECK(text(ps) == "ps0+ worker0+ worker1-");
  CHECK(text(first) == "ps0+ worker0+ worker1-");
  c.at("worker", 1).done();
  CHECK(text(ps) == "ps0+ worker0+ worker1+done");
  auto& other = c.at("worker", 1).coordination();
  while (text(other) != "ps0+ worker0- worker1+done") std::this_thread::yield();
  while (text(first) != "ps0+ worker0+ worker1+done") std::this_thread::yield();
  c.kill("worker", 0);
  while (text(ps) != "ps0+ worker0- worker1+done") std::this_thread::yield();
  // It is not done any more once it has reconnected.
  c.restart("worker", 1);
  c.at("worker", 1).coordination().signal(task_name("ps", 0), "again", 1min);
  CHECK(text(ps) == "ps0+ worker0- worker1+");
  c.kill("ps", 0);
  auto& last = c.at("worker", 1).coordination();
  while (text(last) != "ps0- worker0- worker1+") std::this_thread::yield();
}

TEST_CASE("an interrupted task waits for nothing, and can still say that it is done") {
  local_cluster c({{"ps", 1}, {"worker", 2}}, {.away = 1h});
  auto& here = c.at("worker", 0);
  for (const auto& keeper : {task_name("ps", 0), task_name("worker", 0)}) {
    testing::outcome o;
    std::thread waits(
        [&] { o = outcome_of([&] { here.coordination().wait(keeper, "never", 1h); }); });
    here.interrupt();
    waits.join();
    CAPTURE(o);
    CHECK(o.code == errc::cancelled);
    CHECK(o.says("/job:worker/replica:0/task:0 was interrupted"));
  }
  CHECK(outcome_of([&] { session s(here.target()); }).code == errc::cancelled);
  here.done();
  c.at("worker", 1).done();
  c.at("ps", 0).join();
  here.join();
}

TEST_CASE("interrupting a task ends the steps of its sessions") {
  local_cluster c{{"worker", 2}};
  graph g;
  auto in = as_default(g);
  for (int where : {0, 1}) {
    auto there = on(device(str("/job:worker/task:", where)));
    placeholder<float> x("x");
    tensor<float, 256, 256> a = broadcast_to(x, shape<256, 256>);
    tensor<float, 256, 256> b = a;
    for (int i = 0; i < 4000; ++i) b = matmul(b, a);
    auto last = sum(b);
    session s(c.target("worker", where ^ 1), {.fold = false});
    auto step = s.prepare(last, feeds(x));
    testing::outcome o;
    std::atomic<bool> begun{false};
    std::thread runner([&] {
      begun = true;
      o = outcome_of([&] { step(0.001f); });
    });
    while (!begun) std::this_thread::yield();
    c.at("worker", where ^ 1).interrupt();
    runner.join();
    CAPTURE(o);
    CHECK((o.code == errc::cancelled || o.code == errc::failed_precondition));
  }
}

TEST_CASE("a wait for a task's signal fails once that task is stopped") {
  local_cluster c{{"worker", 2}};
  auto& first = c.at("worker", 0);
  testing::outcome o;
  std::thread waits([&] {
    o = outcome_of(
        [&] { c.at("worker", 1).coordination().wait(task_name("worker", 0), "never", 1h); });
  });
  while (first.coordination().waiting() == 0) std::this_thread::yield();
  first.stop();
  waits.join();
  CAPTURE(o);
  CHECK(o.code == errc::unavailable);
  CHECK(o.says("/job:worker/replica:0/task:0 was stopped"));
}
