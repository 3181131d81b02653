// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <deft/train/replicas/operations.hpp>
#include <deft/train/sync_replicas.hpp>
#include <future>

#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::log_lines;
using testing::outcome_of;
using testing::threaded_job;

namespace {

/// A worker of a job with the loss `w * g`, whose gradient is `g`.
struct replica {
  replica(const std::string& target, int needed, int total, const char* device_name = "/job:ps")
      : scope(as_default(of)),
        there(on(device(device_name))),
        w("w", 1.f),
        g("g"),
        train(sync_replicas(sgd(2), needed, total).minimize(w * g, global_step())),
        counts(output{train.handle(), 0}),
        s(target) {}

  /// Whether the gradient counted.
  bool step(float gradient) { return s.run(counts, g = gradient); }

  graph of;
  graph_scope scope;
  deft::ext::scope there;
  variable<float> w;
  placeholder<float> g;
  operation train;
  tensor<bool> counts;
  session s;
};

/// Runs `f` on a thread of its own, with a replica made there.
template <class F>
auto as_replica(const local_cluster& c, int worker, int needed, int total, F f) {
  return std::async(std::launch::async, [&c, worker, needed, total, f] {
    replica r(c.target("worker", worker), needed, total);
    return f(r);
  });
}

std::int64_t step_of(session& s) {
  return *s.run(any_tensor(detail::expect_global_step("test"))).data<std::int64_t>();
}

}  // namespace

TEST_CASE("sync_replicas moves a variable once by the mean of the replicas' gradients") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  replica a(c.target("worker", 0), 2, 2);
  a.s.run(initialize_all());
  replica_updates updates(a.s);
  auto other = as_replica(c, 1, 2, 2, [](replica& b) { return b.step(0.1f); });
  CHECK(a.step(0.3f));
  CHECK(other.get());
  CHECK(float(a.s.run(a.w)) == doctest::Approx(0.6f));
  CHECK(step_of(a.s) == 1);
}

TEST_CASE("a gradient of an earlier round is dropped, and does not wait") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  replica a(c.target("worker", 0), 1, 2);
  a.s.run(initialize_all());
  replica b(c.target("worker", 1), 1, 2);
  replica_updates updates_a(a.s, a.of), updates_b(b.s, b.of);
  CHECK(a.step(0.25f));
  CHECK_FALSE(b.step(100));
  CHECK(float(a.s.run(a.w)) == 0.5f);
  CHECK(b.step(0.25f));
  CHECK(float(a.s.run(a.w)) == 0.f);
  CHECK(step_of(b.s) == 2);
}

TEST_CASE("a gradient that another thread began in an earlier round is dropped") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  replica a(c.target("worker", 0), 2, 2);
  a.s.run(initialize_all());
  replica_updates updates(a.s);

  graph g;
  const auto in_graph = as_default(g);
  const auto there = on(device("/job:ps"));
  variable<float> w("w", 1.f);
  const variable<float> gate("gate", 0.f), mark("mark", 0.f);
  placeholder<float> x("g");
  tensor<float> gradient;  // waits for the gate, unless it is fed
  if (auto then = control_dependencies(await_initialized(gate))) gradient = identity(x);
  const operation train = sync_replicas(sgd(2), 2, 2).minimize(w * gradient, global_step());
  const tensor<bool> counts(output{train.handle(), 0});
  session s(c.target("worker", 1)), other(c.target("worker", 1));
  const auto round = [&](float mine, float others) {
    auto ended = std::async(std::launch::async, [&] { return a.step(others); });
    CHECK(s.run(counts, feed(gradient, mine)));
    CHECK(ended.get());
  };
  // It has begun when the mark is there.
  auto slow =
      std::async(std::launch::async, [&] { return s.run(counts, mark.assign(1.f), x = 7.f); });
  other.run(await_initialized(mark));
  round(0.25f, 0.25f);
  CHECK(float(other.run(w)) == 0.5f);
  other.run(gate.initializer());
  CHECK_FALSE(slow.get());
  round(0.25f, 0.25f);
  CHECK(float(other.run(w)) == 0.f);
}

TEST_CASE("replicas beyond the number that a round takes are backups") {
  local_cluster c{{"ps", 1}, {"worker", 3}};
  std::vector<std::future<int>> all;
  constexpr int rounds = 30;
  for (int i = 0; i < 3; ++i)
    all.push_back(as_replica(c, i, 2, 3, [i](replica& r) {
      if (i == 0) r.s.run(initialize_all());
      r.s.run(await_initialized(r.w));
      r.s.run(await_initialized(detail::expect_global_step("test")));
      replica_updates updates(r.s);
      int counted = 0;
      while (step_of(r.s) < rounds) counted += r.step(0.5f);
      return counted;
    }));
  int counted = 0;
  for (auto& one : all) counted += one.get();
  replica last(c.target("worker", 0), 2, 3);
  const std::int64_t steps = step_of(last.s);
  CHECK(steps >= rounds);
  CHECK(float(last.s.run(last.w)) == 1 - static_cast<float>(steps));  // each moved it by 1
  CHECK(counted >= rounds);
  CHECK(counted <= 2 * steps);
}

TEST_CASE("workers of a monitored session train in rounds, and end at the same step") {
  threaded_job job(1, 2);
  std::atomic<float> last{0};
  std::atomic<std::int64_t> steps{0};
  const auto codes = job.run([&](task& self) {
    auto scope = on(replica_device(self.cluster(), self.device()));
    variable<float> w("w", 0.f);
    auto train =
        sync_replicas(sgd(1), 2, 2).minimize(self.is_chief() ? w * 1.f : w * 3.f, global_step());
    monitored_session s(self, {.hooks = {stop_at_step(25)}});
    while (!s.should_stop()) s.run(train);
    if (!self.is_chief()) return;
    last = s.session().run(w);
    steps = s.session().run(global_step());
  });
  CHECK(codes == std::vector<int>(3, 0));
  CHECK(steps == 25);
  CHECK(last == -50);
}

TEST_CASE("a monitored session refuses to wait for workers that the cluster does not have") {
  const auto said = [](task& self) {
    variable<float> w("w", 0.f);
    sync_replicas(sgd(1), 1, 3).minimize(w * 1.f, global_step());
    return outcome_of([&] { monitored_session s(self); });
  };
  threaded_job job(0, 2);
  std::atomic<int> refused{0};
  job.run([&](task& self) {
    const auto got = said(self);
    refused += got.code == errc::invalid_argument && got.line != 0 &&
               got.says("[sync_replicas] waits for 3 replicas, and there are 2 workers");
  });
  CHECK(refused == 2);
  const char* const argv[] = {"program"};
  task_main(1, argv, [&](task& self) {
    CHECK(said(self).says("[sync_replicas] waits for 3 replicas, and there is 1 worker"));
  });
}

TEST_CASE("gradients of run-time sized variables are averaged, rows as rows") {
  threaded_job job(1, 2);
  std::atomic<bool> moved{false};
  const auto codes = job.run([&](task& self) {
    auto scope = on(replica_device(self.cluster(), self.device()));
    variable<float, dyn> w("w", ndarray<float, dyn>{1, 2, 3});
    variable<float, dyn, 2> table("table", ndarray<float, 3, 2>{0, 1, 2, 3, 4, 5});
    placeholder<std::int32_t, dyn> ids("ids");
    const any_tensor loss = sum(w) * (self.is_chief() ? 0.25f : 0.75f) + sum(gather(table, ids));
    auto train = sync_replicas(momentum(2, 0.5), 2, 2).minimize(loss, global_step());
    monitored_session s(self, {.hooks = {stop_at_step(1)}});
    const auto mine =
        self.is_chief() ? ndarray<std::int32_t, dyn>{0} : ndarray<std::int32_t, dyn>{0, 2};
    while (!s.should_stop()) s.run(train, ids = mine);
    if (!self.is_chief()) return;
    const std::string text = s.session().explain(train);
    CHECK(text.find("scatter_add") == std::string::npos);
    moved = s.session().run(w) == ndarray<float, dyn>{0, 1, 2} &&
            s.session().run(table) == ndarray<float, 3, 2>{-2, -1, 2, 3, 3, 4};
  });
  CHECK(codes == std::vector<int>(3, 0));
  CHECK(moved);
}

TEST_CASE("a worker that ends leaves the rounds, and the others log it and go on") {
  threaded_job job(1, 2);
  log_lines lines(logging::level::info);
  std::atomic<float> last{0};
  const auto codes = job.run([&](task& self) {
    auto scope = on(replica_device(self.cluster(), self.device()));
    variable<float> w("w", 0.f);
    auto train =
        sync_replicas(sgd(1), 2, 2).minimize(self.is_chief() ? w * 1.f : w * 3.f, global_step());
    monitored_session s(self, {.hooks = {stop_at_step({.num_steps = self.is_chief() ? 10 : 4})}});
    while (!s.should_stop()) s.run(train);
    if (self.is_chief()) last = s.session().run(w);
  });
  CHECK(codes == std::vector<int>(3, 0));
  CHECK(last == -14);  // four steps of 2, and six of the chief's 1
  const std::vector<std::string> said = lines.take();
  for (const char* line :
       {"workers that have left: /job:worker/replica:0/task:1; a step averages "
        "1 gradient",
        "/job:worker/replica:0/task:0 was the last to leave synchronous training"})
    CHECK(std::ranges::count(said, line) == 1);
}

TEST_CASE("a lost worker is no longer expected, and is when it is back") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  replica a(c.target("worker", 0), 2, 2);
  a.s.run(initialize_all());
  replica_updates updates(a.s);
  as_replica(c, 1, 2, 2, [&](replica& b) {
    auto first = std::async(std::launch::async, [&] { return a.step(0.25f); });
    CHECK(b.step(0.25f));
    CHECK(first.get());
    auto second = std::async(std::launch::async, [&] { return a.step(0.125f); });
    c.kill("worker", 1);
    CHECK(second.get());
    return true;
  }).get();
  CHECK(float(a.s.run(a.w)) == 0.25f);
  c.restart("worker", 1);
  as_replica(c, 1, 2, 2, [&](replica& b) {
    replica_updates updates_b(b.s);
    auto third = std::async(std::launch::async, [&] { return a.step(1); });
    CHECK(b.step(3));
    CHECK(third.get());
    return true;
  }).get();
  CHECK(float(a.s.run(a.w)) == -3.75f);
}

TEST_CASE("gradients of rows stay rows") {
  local_cluster c{{"ps", 1}, {"worker", 2}};
  auto train_rows = [&](int worker, std::vector<std::int32_t> ids) {
    graph g;
    auto scope = as_default(g);
    auto there = on(device("/job:ps"));
    variable<float, 4, 2> table("table", zeros());
    placeholder<std::int32_t, 2> x("x");
    auto train = sync_replicas(sgd(2), 2, 2).minimize(sum(gather(table, x)), global_step());
    session s(c.target("worker", worker));
    // What is brought to the parameter server: rows and their numbers.
    const plan_description plan = s.describe(train, x = ids);
    const auto brought = std::ranges::find(plan.placed.nodes, op::accumulate_gradient::name,
                                           [](const node_def& n) { return n.op->name; });
    CHECK(brought != plan.placed.nodes.end());
    CHECK(brought->inputs.size() == 2);
    for (const node_def& n : plan.placed.nodes) CHECK(n.op->name != "scatter_add");
    if (worker == 0) s.run(initialize_all());
    s.run(await_initialized(table));
    replica_updates updates(s);
    s.run(train, x = ids);
    return ndarray<float, 4, 2>(s.run(table));
  };
  auto other = std::async(std::launch::async, [&] { return train_rows(1, {1, 3}); });
  const auto table = train_rows(0, {1, 1});
  CHECK(table == ndarray<float, 4, 2>{0, 0, -3, -3, 0, 0, -1, -1});
  CHECK(other.get() == table);
}

TEST_CASE("what follows the update happens once a round") {
  threaded_job job(1, 2);
  const auto codes = job.run([&](task& self) {
    auto scope = on(replica_device(self.cluster(), self.device()));
    variable<float> w("w", 0.f);
    exponential_moving_average averages(0.5);
    auto train = sync_replicas(sgd(1), 2, 2, [&] {
                   return averages.apply();
                 }).minimize(w * 1.f, global_step());
    monitored_session s(self, {.hooks = {stop_at_step(3)}});
    while (!s.should_stop()) s.run(train);
    CHECK(s.session().run(w) == -3.f);
    CHECK(*s.session().run(averages.average(w)).data<float>() == -2.125f);  // of -1, -2 and -3
  });
  CHECK(codes == std::vector<int>(3, 0));
}

TEST_CASE("the error of an update reaches the replicas") {
  local_cluster c{{"ps", 1}, {"worker", 1}};
  auto there = on(device("/job:ps"));
  graph g;
  auto scope = as_default(g);
  variable<float> w("w", 1.f), rate("rate", 1.f, {.trainable = false});
  auto train = sync_replicas(sgd(rate), 1, 1).minimize(w * w);
  session s(c.target("worker", 0));
  s.run(w.initializer());
  replica_updates updates(s);
  const auto o = outcome_of([&] { s.run(train); });
  CHECK(o.code == errc::failed_precondition);
  CHECK(o.says("rate"));
  s.run(rate.initializer());  // and the next round can be applied
  s.run(train);
  CHECK(float(s.run(w)) == -1.f);
}

TEST_CASE("a step that nobody would apply is refused, and so are impossible numbers") {
  local_cluster c{{"ps", 1}, {"worker", 1}};
  replica a(c.target("worker", 0), 1, 1);
  a.s.run(initialize_all());
  const auto alone = outcome_of([&] { a.step(1); });
  CHECK(alone.code == errc::failed_precondition);
  CHECK(alone.says("replica_updates"));
  { replica_updates updates(a.s); }
  CHECK_FALSE(a.step(1));  // it has left

  CHECK(outcome_of([] { sync_replicas(sgd(1), 3, 2); }).code == errc::invalid_argument);
  replica other(c.target("worker", 0), 1, 2);
  CHECK(outcome_of([&] { other.step(1); }).code == errc::invalid_argument);
}
