// SPDX-License-Identifier: Apache-2.0
// A round of sync_replicas leaves what one session would make of the mean gradient, bit for bit.
#include <deft/train/moving_average.hpp>
#include <deft/train/optimizers.hpp>
#include <deft/train/schedule.hpp>
#include <deft/train/sync_replicas.hpp>
#include <future>
#include <map>

#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using testing::threaded_job;

namespace {

constexpr int rounds = 5, workers = 2;
constexpr const char* ps = "/job:ps";

enum class rate_kind { constant, schedule, variable };

/// Calls `f` with a name and a function that makes the optimizer.
template <class F>
void each_optimizer(F f) {
  using rate = const hyperparameter&;
  f("sgd", [](rate r) { return sgd(r); });
  f("momentum", [](rate r) { return momentum(r, 0.9); });
  f("nesterov", [](rate r) { return momentum(r, 0.9, {.nesterov = true}); });
  f("adagrad", [](rate r) { return adagrad(r); });
  f("adadelta", [](rate r) { return adadelta(r); });
  f("rmsprop", [](rate r) { return rmsprop(r); });
  f("rmsprop_centered", [](rate r) { return rmsprop(r, {.momentum = 0.5, .centered = true}); });
  f("adam", [](rate r) { return adam(r); });
  f("adamw", [](rate r) { return adamw(r); });
  f("ftrl", [](rate r) { return ftrl(r, {.l1 = 0.01}); });
}

/// What an optimizer trains, a variable and rows of another, with a step, a rate and averages of
/// its own.
struct model {
  model(const std::string& name, rate_kind kind)
      : w(name + "/w", ndarray<float, 4>{1, -2, 3, -4}),
        table(name + "/table", ndarray<float, 5, 2>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
        step(name + "/step", std::int64_t{0}, {.trainable = false}),
        rate(name + "/rate", 0.25f, {.trainable = false}),
        averages(0.9, {.num_updates = step}),
        learning_rate(kind == rate_kind::constant ? hyperparameter(0.1)
                      : kind == rate_kind::schedule
                          ? hyperparameter(exponential_decay(0.5, step, 1, 0.5))
                          : hyperparameter(rate)) {}

  template <class G, class I, class R>
  any_tensor loss(const G& g, const I& ids, const R& of_rows) const {
    return sum(w * g) + sum(gather(table, ids) * of_rows);
  }
  /// What happens once a round.
  operation after() { return group(averages.apply({w, table}), rate.assign(rate.read() * 0.5f)); }
  std::vector<any_variable> trained() const { return {w, table}; }

  variable<float, 4> w;
  variable<float, 5, 2> table;
  variable<std::int64_t> step;
  variable<float> rate;
  exponential_moving_average averages;
  hyperparameter learning_rate;
};

/// What a replica is fed.
struct inputs {
  explicit inputs(const std::string& name)
      : g(name + "/g"), ids(name + "/ids"), of_rows(name + "/of_rows") {}
  placeholder<float, 4> g;
  placeholder<std::int32_t, 2> ids;
  placeholder<float, 2, 2> of_rows;
};
ndarray<float, 4> gradient_in(int worker, int round) {
  ndarray<float, 4> g;
  for (int i = 0; i < 4; ++i)
    g(i) = 0.37f * static_cast<float>(i - 1) + 0.11f * static_cast<float>(worker + 2 * round);
  return g;
}
ndarray<std::int32_t, 2> ids_in(int worker, int round) { return {(worker + round) % 5, 2}; }
ndarray<float, 2, 2> of_rows_in(int worker, int round) {
  const float r = 0.13f * static_cast<float>(round + 1);
  return {r, -r, 0.7f - r, 0.3f * static_cast<float>(worker)};
}

using values = std::map<std::string, any_array>;
template <class Run>
values all_values(const Run& run) {
  values all;
  for (const node_ref& v : current_graph().variables())
    all.emplace(any_variable(v).name(), run(any_tensor(any_variable(v).handle())));
  return all;
}
void check_equal(const values& got, const values& expected) {
  CHECK(got.size() == expected.size());
  for (const auto& variable : expected) {
    const std::string& name = variable.first;
    CAPTURE(name);
    const auto found = got.find(name);
    REQUIRE(found != got.end());
    CHECK(found->second == variable.second);
  }
}

/// By one session, from the gradients of all workers.
values by_one_session(rate_kind kind) {
  graph g;
  const auto in_graph = as_default(g);
  std::vector<std::unique_ptr<model>> models;
  std::vector<operation> all;
  std::vector<std::unique_ptr<inputs>> in;
  for (int i = 0; i < workers; ++i) in.push_back(std::make_unique<inputs>(str("in_", i)));
  each_optimizer([&](const char* name, auto make) {
    model& m = *models.emplace_back(std::make_unique<model>(name, kind));
    const auto optimizer = make(m.learning_rate);
    std::vector<std::vector<gradient_of_variable>> gradients;
    for (const auto& x : in)
      gradients.push_back(
          optimizer.compute_gradients(m.loss(x->g, x->ids, x->of_rows), m.trained()));
    const operation train = optimizer.apply_gradients(average_gradients(gradients), m.step);
    if (auto then = control_dependencies(train)) all.push_back(m.after());
  });
  session s;
  s.run(initialize_all());
  const operation step = group(all);
  for (int r = 0; r < rounds; ++r)
    s.run(step, in[0]->g = gradient_in(0, r), in[0]->ids = ids_in(0, r),
          in[0]->of_rows = of_rows_in(0, r), in[1]->g = gradient_in(1, r),
          in[1]->ids = ids_in(1, r), in[1]->of_rows = of_rows_in(1, r));
  return all_values([&](const any_tensor& t) { return s.run(t); });
}

/// A replica of all models in the current graph.
struct replica {
  explicit replica(rate_kind kind) : in("in") {
    each_optimizer([&](const char* name, auto make) {
      model& m = *models.emplace_back(std::make_unique<model>(name, kind));
      trains.push_back(sync_replicas(make(m.learning_rate), workers, workers, [&m] {
                         return m.after();
                       }).minimize(m.loss(in.g, in.ids, in.of_rows), m.trained(), m.step));
    });
  }
  template <class Session>
  void train(Session& s, int worker) {
    for (int r = 0; r < rounds; ++r)
      for (const operation& t : trains)
        s.run(t, in.g = gradient_in(worker, r), in.ids = ids_in(worker, r),
              in.of_rows = of_rows_in(worker, r));
  }

  inputs in;
  std::vector<std::unique_ptr<model>> models;
  std::vector<operation> trains;
};

values by_sessions(rate_kind kind) {
  local_cluster c{{"ps", 1}, {"worker", workers}};
  auto work = [&](int worker) {
    graph g;
    const auto in_graph = as_default(g);
    const auto there = on(device(ps));
    replica r(kind);
    session s(c.target("worker", worker));
    if (worker == 0) s.run(initialize_all());
    for (const node_ref& v : g.variables()) s.run(await_initialized(any_variable(v)));
    const replica_updates updates(s);
    r.train(s, worker);
    return all_values([&](const any_tensor& t) { return s.run(t); });
  };
  auto other = std::async(std::launch::async, [&] { return work(1); });
  values mine = work(0);
  check_equal(other.get(), mine);
  return mine;
}

values by_monitored_sessions(rate_kind kind) {
  threaded_job job(1, workers);
  values all;
  const auto codes = job.run([&](task& self) {
    const auto there = on(replica_device(self.cluster(), self.device()));
    replica r(kind);
    monitored_session s(self);
    r.train(s, self.index());
    if (self.is_chief()) all = all_values([&](const any_tensor& t) { return s.session().run(t); });
  });
  CHECK(codes == std::vector<int>(1 + workers, 0));
  return all;
}

}  // namespace

TEST_CASE("a round is one update, as one session would make it of the mean gradient") {
  for (const rate_kind kind : {rate_kind::constant, rate_kind::schedule, rate_kind::variable}) {
    CAPTURE(static_cast<int>(kind));
    const values expected = by_one_session(kind);
    CHECK(expected.at("momentum/step") == any_array::scalar(std::int64_t{rounds}));
    check_equal(by_sessions(kind), expected);
    check_equal(by_monitored_sessions(kind), expected);
  }
}

TEST_CASE("a round that backup workers take part in is one update, too") {
  constexpr std::int64_t enough = 20;
  std::int64_t steps = 0;
  float trained = 0, average = 0;
  {
    threaded_job job(1, 3);
    const auto codes = job.run([&](task& self) {
      const auto there = on(replica_device(self.cluster(), self.device()));
      exponential_moving_average averages(0.9, {.num_updates = global_step()});
      variable<float> w("w", 0.f);
      const auto train =
          sync_replicas(momentum(exponential_decay(0.5, global_step(), 4, 0.5), 0.75), 2, 3, [&] {
            return averages.apply({w});
          }).minimize(w * 0.3f, global_step());
      monitored_session s(self, {.hooks = {stop_at_step(enough)}});
      while (!s.should_stop()) s.run(train);
      if (!self.is_chief()) return;
      trained = s.session().run(w);
      average = *s.session().run(any_tensor(averages.average(w))).data<float>();
      steps = s.session().run(global_step());
    });
    CHECK(codes == std::vector<int>(4, 0));
  }
  CHECK(steps >= enough);
  graph g;
  const auto in_graph = as_default(g);
  exponential_moving_average averages(0.9, {.num_updates = global_step()});
  variable<float> w("w", 0.f);
  operation both;
  if (auto then = control_dependencies(momentum(exponential_decay(0.5, global_step(), 4, 0.5), 0.75)
                                           .minimize(w * 0.3f, global_step())))
    both = averages.apply({w});
  session s;
  s.run(initialize_all());
  for (std::int64_t i = 0; i < steps; ++i) s.run(both);
  CHECK(trained == float(s.run(w)));
  CHECK(average == *s.run(any_tensor(averages.average(w))).data<float>());
}
