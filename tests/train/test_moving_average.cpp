// SPDX-License-Identifier: Apache-2.0
#include <deft/train/moving_average.hpp>
#include <deft/train/optimizers.hpp>
#include <deft/train/saver.hpp>

#include "../data/temporary_folder.hpp"
#include "training.hpp"

using namespace deft;
using doctest::Approx;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "averages follow their variables") {
  variable<double> w("w", 10.);
  variable<float, 2> u("u", ones());
  placeholder<double> x("x");
  exponential_moving_average averages(0.9);
  const auto set = w.assign(x);
  operation train;
  {
    auto after = control_dependencies(set);
    train = averages.apply({w, u});
  }
  CHECK(!averages.average(w).handle().node->variable()->trainable);
  CHECK(averages.average(w).name() == "w/moving_average");
  session s;
  s.run(initialize_all());
  const any_tensor shadow = averages.average(w);
  auto average = [&] { return *any_array(s.run(shadow)).data<double>(); };
  CHECK(average() == 10);
  double expected = 10;
  for (const double v : {4., -2., 7.}) {
    s.run(train, x = v);
    expected = 0.9 * expected + 0.1 * v;
    CHECK(average() == Approx(expected));
  }
  CHECK(any_array(s.run(any_tensor(averages.average(u)))).data<float>()[1] == 1);
}

TEST_CASE_FIXTURE(own_graph, "the decay grows with the number of updates") {
  variable<double> w("w", 0.);
  const auto step = global_step();
  exponential_moving_average averages(0.99, {.num_updates = step, .name = "average"});
  const operation train = sgd(1).minimize(w * -1., step);
  operation both;
  {
    auto after = control_dependencies(train);
    both = averages.apply();
  }
  session s;
  s.run(initialize_all());
  double v = 0, expected = 0;
  for (int n = 1; n <= 20; ++n) {
    s.run(both);
    v += 1;
    CHECK(s.run(w) == v);
    // The step is read before it is incremented.
    const double decay = std::min(0.99, (1. + (n - 1)) / (10. + (n - 1)));
    expected = decay * expected + (1 - decay) * v;
    CHECK(*any_array(s.run(any_tensor(averages.average(w)))).data<double>() == Approx(expected));
  }
}

TEST_CASE_FIXTURE(own_graph, "variables and averages are swapped for an evaluation") {
  variable<double> w("w", 1.), u("u", 2.);
  exponential_moving_average averages(0.5);
  const operation update = averages.apply({w, u});
  const operation swap = averages.swap();
  session s;
  s.run(initialize_all());
  s.run(w.assign(5.));
  s.run(u.assign(6.));
  s.run(update);
  s.run(swap);
  CHECK(s.run(w) == 3);
  CHECK(s.run(u) == 4);
  s.run(swap);
  CHECK(s.run(w) == 5);
  CHECK(s.run(u) == 6);
}

TEST_CASE_FIXTURE(own_graph, "a tensor that cannot be averaged is refused by name") {
  variable<int> count("count", 1);
  CHECK(testing::error_of([&] { exponential_moving_average(0.5).apply({count}); })
            .starts_with("invalid_argument: [exponential_moving_average] expects floating "
                         "variables, and got int32(), node \"count\""));
  variable<double> w("w", 1.);
  variable<double, 2> wide("wide", ones());
  exponential_moving_average averages(0.5);
  CHECK(testing::error_of([&] { averages.apply(std::vector<any_variable>()); })
            .starts_with("invalid_argument: [exponential_moving_average] there are no variables to "
                         "average"));
  CHECK(testing::error_of([&] { averages.average(w); })
            .starts_with("not_found: [exponential_moving_average] it has no average of this "
                         "variable"));
  CHECK(testing::error_of([] { exponential_moving_average(1.5); })
            .starts_with("invalid_argument: [exponential_moving_average] expects a decay from 0 to "
                         "1, and got 1.5"));
  CHECK(testing::error_of([&] {
          exponential_moving_average(0.5, {.num_updates = wide});
        }).find("and got double(2)") != std::string::npos);
}

TEST_CASE_FIXTURE(own_graph, "a program that evaluates restores the averages") {
  const testing::temporary_folder files;
  const std::string path = (files / "model").string();
  {
    variable<float> w("w", 0.f);
    variable<float> scale("scale", 3.f, {.trainable = false});
    exponential_moving_average averages(0.5);
    operation both;
    if (auto after = control_dependencies(w.assign(8.f))) both = averages.apply();
    session s;
    s.run(initialize_all());
    s.run(both);
    saver().save(s, path);
  }
  graph evaluation;
  auto in_graph = as_default(evaluation);
  variable<float> w("w", 0.f);
  variable<float> scale("scale", 0.f, {.trainable = false});
  session s;
  saver averaged({.named = exponential_moving_average(0.5).variables_to_restore()});
  averaged.restore(s, path);
  CHECK(s.run(w) == 4);
  CHECK(s.run(scale) == 3);
}
