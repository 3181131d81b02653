// SPDX-License-Identifier: Apache-2.0
#include <deft/train/optimizers.hpp>

#include <cmath>
#include <deft/train/clip.hpp>
#include <deft/train/moving_average.hpp>
#include <deft/train/schedule.hpp>
#include <functional>
#include <limits>

#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using doctest::Approx;
using testing::own_graph;

namespace {

/// One element of a variable, and its slots: the published formula in plain double.
struct element {
  double v, a = 0, b = 0, c = 0, t = 0;
};
using formula = std::function<void(element&, double g)>;

constexpr double rate = 0.3;
const double first[] = {1.5, -0.7, 0, 2};
/// The gradient is v - target, so its sign changes during training.
const double target[] = {0.2, -0.1, 0.4, -3};

/// Ten steps of `o` on float and double, of static, given and run-time extents, compared with `f`.
void follow(const optimizer& o, element begin, const formula& f) {
  variable<float, 4> w("w", ndarray<float, 4>{1.5f, -0.7f, 0, 2});
  any_variable d("d", {2, 2}, ndarray<double, 2, 2>{1.5, -0.7, 0, 2}, dtype::float64);
  const auto of_w = square(w - constant({0.2f, -0.1f, 0.4f, -3.f}));
  const any_tensor of_d = square(d - constant(ndarray<double, 2, 2>{0.2, -0.1, 0.4, -3}));
  variable<double, dyn> r("r", ndarray<double, 4>{1.5, -0.7, 0, 2});
  REQUIRE(any_variable(r).shape() == dims{dyn});
  const auto of_r = square(r - constant(ndarray<double, 4>{0.2, -0.1, 0.4, -3}));
  const operation step =
      o.minimize(cast<double>(sum(of_w)) * 0.5 + sum(of_d) * 0.5 + sum(of_r) * 0.5);
  element expected[4];
  for (int i = 0; i < 4; ++i) {
    expected[i] = begin;
    expected[i].v = first[i];
  }
  session s, unfused({.fuse = false});
  // A variable and its slots are written in one pass.
  const plan_description plan = s.describe(step);
  CHECK(std::ranges::count_if(plan.placed.nodes, [](const node_def& n) {
          return n.op->role == op_role::update && n.outputs[0].shape.rank() > 0;
        }) == 3);
  CHECK(std::ranges::none_of(plan.placed.nodes, [](const node_def& n) {
    return n.op->role == op_role::assign && n.outputs[0].shape.rank() > 0;
  }));
  for (session* each : {&s, &unfused}) {
    each->run(initialize_all());
    element e[4];
    std::copy(expected, expected + 4, e);
    for (int n = 0; n < 10; ++n) {
      each->run(step);
      const auto got = each->run(w);
      const any_array exact = each->run(any_tensor(d)), sized = each->run(any_tensor(r));
      for (int i = 0; i < 4; ++i) {
        CAPTURE(n);
        CAPTURE(i);
        ++e[i].t;
        f(e[i], e[i].v - target[i]);
        CHECK(got(i) == Approx(e[i].v).epsilon(2e-5));
        CHECK(exact.data<double>()[i] == Approx(e[i].v).epsilon(1e-12));
        CHECK(sized.data<double>()[i] == Approx(e[i].v).epsilon(1e-12));
      }
    }
  }
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "gradient descent") {
  follow(sgd(rate), {}, [](element& e, double g) { e.v -= rate * g; });
}

TEST_CASE_FIXTURE(own_graph, "momentum") {
  follow(momentum(rate, 0.6), {}, [](element& e, double g) {
    e.a = 0.6 * e.a + g;
    e.v -= rate * e.a;
  });
}

TEST_CASE_FIXTURE(own_graph, "Nesterov's momentum") {
  follow(momentum(rate, 0.6, {.nesterov = true}), {}, [](element& e, double g) {
    e.a = 0.6 * e.a + g;
    e.v -= rate * (g + 0.6 * e.a);
  });
}

TEST_CASE_FIXTURE(own_graph, "Adagrad") {
  follow(adagrad(rate, 0.2), {.v = 0, .a = 0.2}, [](element& e, double g) {
    e.a += g * g;
    e.v -= rate * g / std::sqrt(e.a);
  });
}

TEST_CASE_FIXTURE(own_graph, "Adadelta") {
  follow(adadelta(rate, {.rho = 0.8, .epsilon = 1e-3}), {}, [](element& e, double g) {
    e.a = 0.8 * e.a + 0.2 * g * g;
    const double u = g * std::sqrt(e.b + 1e-3) / std::sqrt(e.a + 1e-3);
    e.b = 0.8 * e.b + 0.2 * u * u;
    e.v -= rate * u;
  });
}

TEST_CASE_FIXTURE(own_graph, "RMSProp") {
  follow(rmsprop(rate, {.decay = 0.8, .epsilon = 1e-4}), {.v = 0, .a = 1},
         [](element& e, double g) {
           e.a = 0.8 * e.a + 0.2 * g * g;
           e.v -= rate * g / std::sqrt(e.a + 1e-4);
         });
}

TEST_CASE_FIXTURE(own_graph, "RMSProp, with momentum and centered") {
  follow(rmsprop(rate, {.decay = 0.8, .momentum = 0.5, .epsilon = 1e-2, .centered = true}),
         {.v = 0, .a = 1}, [](element& e, double g) {
           e.a = 0.8 * e.a + 0.2 * g * g;
           e.b = 0.8 * e.b + 0.2 * g;
           e.c = 0.5 * e.c + rate * g / std::sqrt(e.a - e.b * e.b + 1e-2);
           e.v -= e.c;
         });
}

TEST_CASE_FIXTURE(own_graph, "centered RMSProp stays finite where the gradient settles") {
  variable<float> w("w", 0.f);
  placeholder<float> x("x");
  const operation step = rmsprop(0.01, {.centered = true}).minimize(w * x);
  session s;
  for (const float settled : {1000.f, 1.f, 0.1f, 3.3f}) {
    s.run(initialize_all());
    for (int i = 0; i < 400; ++i) s.run(step, x = i < 100 ? 2 * settled : settled);
    CHECK(std::isfinite(s.run(w)));
  }
}

namespace {

void adam_step(element& e, double g, double decay) {
  e.a = 0.8 * e.a + 0.2 * g;
  e.b = 0.9 * e.b + 0.1 * g * g;
  const double corrected = rate * std::sqrt(1 - std::pow(0.9, e.t)) / (1 - std::pow(0.8, e.t));
  e.v -= corrected * e.a / (std::sqrt(e.b) + 1e-4) + rate * decay * e.v;
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "Adam") {
  follow(adam(rate, {.beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-4}), {},
         [](element& e, double g) { adam_step(e, g, 0); });
}

TEST_CASE_FIXTURE(own_graph, "Adam with decoupled weight decay") {
  follow(adamw(rate, 0.05, {.beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-4}), {},
         [](element& e, double g) { adam_step(e, g, 0.05); });
}

TEST_CASE("options alone leave the usual rate") {
  auto step_of = [](const optimizer& o) {
    const graph g;
    const auto in_graph = as_default(g);
    const variable<float> v("v", 1.f);
    const operation step = o.minimize(v * v);
    session s;
    s.run(initialize_all());
    s.run(step);
    return 1 - s.run(v);
  };
  CHECK(step_of(adam({.epsilon = 1})) == step_of(adam(0.001, {.epsilon = 1})));
  CHECK(step_of(adam({.epsilon = 1})) != step_of(adam()));
  CHECK(step_of(adadelta({.rho = 0.5})) == step_of(adadelta(0.001, {.rho = 0.5})));
  CHECK(step_of(adadelta({.rho = 0.5})) != step_of(adadelta()));
}

TEST_CASE_FIXTURE(own_graph, "FTRL") {
  for (const double power : {-0.5, -0.7}) {
    graph other;
    auto in = as_default(other);
    follow(ftrl(rate, {.power = power, .initial_accumulator = 0.2, .l1 = 0.3, .l2 = 0.01}),
           {.v = 0, .a = 0.2}, [=](element& e, double g) {
             const double more = e.a + g * g;
             e.b += g - (std::pow(more, -power) - std::pow(e.a, -power)) / rate * e.v;
             e.a = more;
             const double sign = e.b < 0 ? -1 : 1;
             e.v = std::abs(e.b) <= 0.3
                       ? 0
                       : (sign * 0.3 - e.b) / (std::pow(e.a, -power) / rate + 2 * 0.01);
           });
  }
}

TEST_CASE_FIXTURE(own_graph, "FTRL keeps what is not a number") {
  variable<float, 2> w("w", ones());
  placeholder<float, 2> x("x");
  session s;
  const operation step = ftrl(0.1).minimize(sum(w * x));
  s.run(initialize_all());
  s.run(step, x = {std::numeric_limits<float>::quiet_NaN(), 1});
  CHECK(std::isnan(s.run(w)(0)));
  CHECK(std::isfinite(s.run(w)(1)));
}

TEST_CASE_FIXTURE(own_graph, "nothing is divided by 0 where gradients are 0 and epsilon is") {
  const double tiny = 1e-60;  // 0 as float
  const auto trained = [](const optimizer& o) {
    graph each;
    const auto in_each = as_default(each);
    variable<float, 3> w("w", ones());
    placeholder<float, 3> x("x");
    const operation step = o.minimize(sum(w * x));
    session s;
    s.run(initialize_all());
    // The square of the second is 0, and the first comes to 0.
    s.run(step, x = {1, 1e-30f, 0});
    s.run(step, x = {0, 1e-30f, 0});
    return ndarray<float, 3>(s.run(w));
  };
  for (const double epsilon : {0., tiny}) {
    const auto w = trained(adam(0.1, {.epsilon = epsilon}));
    CHECK(w(0) < 0.9f);
    CHECK(std::isfinite(w(0)));
    CHECK(w(1) == 1);
    CHECK(w(2) == 1);
    const auto decayed = trained(adamw(0.1, 0.5, {.epsilon = epsilon}));
    CHECK(std::isfinite(decayed(0)));
    CHECK(decayed(2) == Approx(0.95 * 0.95));
  }
  const auto refused = [&](const optimizer& o) { return testing::error_of([&] { trained(o); }); };
  CHECK(refused(adagrad(0.1, tiny)) ==
        "invalid_argument: [adagrad] expects an initial accumulator above 0, and got 1e-60, which "
        "is 0 as float");
  for (const std::string& e :
       {refused(adadelta({.epsilon = tiny})), refused(rmsprop(0.1, {.epsilon = tiny})),
        refused(ftrl(0.1, {.initial_accumulator = tiny})), refused(ftrl(tiny))})
    CHECK(e.find("which is 0 as float") != std::string::npos);
  CHECK(refused(ftrl(0)) == "invalid_argument: [ftrl] expects a learning rate above 0, and got 0");
}

TEST_CASE_FIXTURE(own_graph, "FTRL stays where it is while a schedule's rate is 0") {
  variable<float> w("w", 1.f);
  placeholder<float> r("r");
  const operation step = ftrl(r).minimize(w * w);
  session s;
  s.run(initialize_all());
  s.run(step, r = 0.1f);
  const float moved = s.run(w);
  CHECK(moved < 1);
  s.run(step, r = 0.f);
  CHECK(float(s.run(w)) == moved);
  s.run(step, r = 0.1f);
  CHECK(float(s.run(w)) < moved);
}

TEST_CASE_FIXTURE(own_graph, "options that no formula has are refused") {
  variable<float> w("w", 1.f);
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   infinity = std::numeric_limits<double>::infinity();
  const auto says = [&](const optimizer& o, std::string_view text) {
    const std::string e = testing::error_of([&] { o.minimize(w * 2.f); });
    CAPTURE(e);
    CHECK(e == str("invalid_argument: ", text));
  };
  says(adagrad(0.1, 0), "[adagrad] expects an initial accumulator above 0, and got 0");
  says(adadelta({.rho = 1.5}), "[adadelta] expects a rho from 0 to below 1, and got 1.5");
  says(rmsprop(0.1, {.epsilon = 0}), "[rmsprop] expects an epsilon above 0, and got 0");
  says(adam({.beta1 = 1}), "[adam] expects a beta1 from 0 to below 1, and got 1");
  says(adam({.beta2 = nan}), "[adam] expects a beta2 from 0 to below 1, and got nan");
  says(adamw(0.1, -1), "[adam] expects a weight_decay from 0, and got -1");
  says(ftrl(0.1, {.power = 1}), "[ftrl] expects a power of at most 0, and got 1");
  says(ftrl(0.1, {.l1 = -1}), "[ftrl] expects an l1 from 0, and got -1");
  says(sgd(nan), "[optimizer] expects a finite number as a hyperparameter, and got nan as float");
  says(momentum(0.1, infinity),
       "[optimizer] expects a finite number as a hyperparameter, and got inf as float");
  CHECK(current_graph().variables().size() == 1);  // no slots are left
}

TEST_CASE_FIXTURE(own_graph, "a slot is not another variable of its name") {
  variable<float> w("w", 1.f), taken("w/adagrad", 5.f);
  variable<int> wrong("w/momentum", 5);
  CHECK(testing::error_of([&] {
          adagrad(0.1).minimize(w * 2.f, {w});
        }).starts_with("invalid_argument: a variable of this name, float(), is in the graph"));
  CHECK(
      testing::error_of([&] { momentum(0.1, 0.5).minimize(w * 2.f, {w}); })
          .starts_with("invalid_argument: a variable of this name, int32(), is in the graph "
                       "already, where a slot of \"w\", float(), is needed, node \"w/momentum\""));
}

TEST_CASE_FIXTURE(own_graph, "a rate may be a tensor that changes in each step") {
  variable<double> w("w", 1.);
  variable<float, 3> u("u", ones());
  placeholder<double> r("r");
  const auto loss = w * 3. + cast<double>(sum(u));
  const operation step = sgd(r).minimize(loss);
  const operation heavy = momentum(r, r).minimize(w * 3.);
  session s;
  s.run(initialize_all());
  s.run(step, r = 0.5);
  CHECK(s.run(w) == -0.5);
  CHECK(s.run(u)(2) == 0.5f);
  s.run(step, r = 2.);
  CHECK(s.run(w) == -6.5);
  s.run(heavy, r = 0.5);
  CHECK(s.run(w) == -8);
  s.run(heavy, r = 1.);
  CHECK(s.run(w) == -8 - (3 + 3));

  placeholder<float, 2> wide("wide");
  placeholder<int> whole("whole");
  CHECK(testing::error_of([&] { sgd o(wide); })
            .starts_with("invalid_argument: [optimizer] expects a number or a floating scalar as a "
                         "hyperparameter, and got float(2), node \"wide\" at"));
  CHECK(testing::error_of([&] { sgd o(whole); }).find("and got int32()") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "an update waits for its control dependencies") {
  variable<double> w("w", 2.), n("n", 0.);
  const auto counted = n.assign_add(1.);
  operation step, kept;
  {
    auto after = control_dependencies(counted);
    step = ftrl(0.5).minimize(w * w);
    kept = adam(0.5).minimize(w * w);
  }
  session s;
  s.run(initialize_all());
  s.run(step);
  CHECK(s.run(n) == 1);
  CHECK(s.run(w) < 2);
  s.run(kept);
  CHECK(s.run(n) == 2);
}

TEST_CASE_FIXTURE(own_graph, "slots are made once, next to their variables") {
  auto w = on(device("/cpu:1"), [] { return variable<float, 2>("w", ones()); });
  auto layer = name_scope("training");
  const adam o(0.1);
  const operation one = o.minimize(sum(w)), other = o.minimize(sum(w * 2.f));
  std::vector<std::string> names;
  for (const node_ref& v : current_graph().variables()) names.push_back(v->variable()->name);
  std::ranges::sort(names);
  INFO(join(names, " "));
  CHECK(names == std::vector<std::string>{"w", "w/adam/beta1_power", "w/adam/beta2_power",
                                          "w/adam/mean", "w/adam/square"});
  CHECK(trainable_variables().size() == 1);
  CHECK(trainable_variables()[0].name() == "w");
  session s({.cpu_devices = 2});
  for (const node_ref& v : current_graph().variables())
    CHECK(s.device_of(any_tensor(output{v, 0})) == s.device_of(w));
}

TEST_CASE_FIXTURE(own_graph, "only the variables asked for are updated") {
  variable<double> w("w", 1.), u("u", 1.);
  const sgd o(1);
  const auto gradients = o.compute_gradients(w * 2. + u * 3., {u});
  REQUIRE(gradients.size() == 1);
  CHECK(gradients[0].variable.name() == "u");
  session s;
  s.run(initialize_all());
  s.run(o.apply_gradients(gradients));
  CHECK(s.run(w) == 1);
  CHECK(s.run(u) == -2);
}

TEST_CASE_FIXTURE(own_graph, "gradients of replicas are averaged") {
  variable<double> w("w", 1.), u("u", 1.);
  const sgd o(1);
  auto of = [&](const any_tensor& loss) { return o.compute_gradients(loss); };
  const auto mean = average_gradients({of(w * 2. + u), of(w * 4.)});
  session s;
  s.run(initialize_all());
  s.run(o.apply_gradients(mean));
  CHECK(s.run(w) == 1 - 3);
  CHECK(s.run(u) == 0.5);  // a missing gradient counts as 0
  CHECK(average_gradients({}).empty());
  CHECK(testing::error_of([&] {
          average_gradients({{}, of(w * 2.)});
        }).starts_with("invalid_argument: [average_gradients] the replicas have gradients of"));
  CHECK(testing::error_of([&] {
          average_gradients({of(w * 2.), o.compute_gradients(w * 2., {u, w})});
        })
            .starts_with("invalid_argument: [average_gradients] the replicas have gradients of "
                         "different variables, node \"w\" at"));
}

TEST_CASE("what optimizers write belongs to the variables' graph, whichever is current") {
  graph mine;
  variable<double> w = [&] {
    auto in = as_default(mine);
    return variable<double>("w", 4.);
  }();
  const any_tensor loss = [&] {
    auto in = as_default(mine);
    return any_tensor(w * w);
  }();
  const any_tensor step = [&] {
    auto in = as_default(mine);
    return any_tensor(global_step());
  }();
  own_graph other;
  const momentum o(exponential_decay(0.25, step, 10, 0.5), 0.5);
  const operation train = o.apply_gradients(clip_by_global_norm(o.compute_gradients(loss), 1));
  exponential_moving_average averages(0.5);
  const operation averaged = averages.apply({w});
  session s;
  auto in = as_default(mine);
  s.run(initialize_all());
  s.run(train);
  CHECK(s.run(w) == 3.75);
  s.run(averaged);
  CHECK(*any_array(s.run(any_tensor(averages.average(w)))).data<double>() == 3.875);
}
