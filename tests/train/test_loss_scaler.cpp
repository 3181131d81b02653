// SPDX-License-Identifier: Apache-2.0
#include <deft/session/session.hpp>
#include <deft/train/clip.hpp>
#include <deft/train/loss_scaler.hpp>
#include <deft/train/optimizers.hpp>

#include "kernels/arrays.hpp"
#include "op/modeling.hpp"
#include "testing.hpp"

using namespace deft;

TEST_CASE_FIXTURE(testing::own_graph,
                  "a step with a gradient that is not finite halves the scale, and is skipped") {
  placeholder<float> x("x");
  variable<float16> w("w", 1.f);
  const auto loss = cast<float>(w) * x;
  const auto step = global_step();
  const loss_scaler o(adam(0.25f));
  const operation train = o.minimize(loss, step);
  const any_variable scale = o.scale(), master(current_graph().find_variable("w/master")),
                     mean(current_graph().find_variable("w/adam/mean")),
                     power(current_graph().find_variable("w/adam/beta1_power"));
  session s;
  s.run(initialize_all());
  const auto state = [&] {
    return s.run(w, any_tensor(master), any_tensor(mean), any_tensor(power));
  };
  s.run(train, x = 1.f);
  s.run(train, x = 1.f);
  CHECK(*s.run(any_tensor(scale)).data<float>() == 32768);
  CHECK(std::int64_t(s.run(step)) == 2);
  const auto before = state();
  CHECK(float(std::get<0>(before)) < 1);

  s.run(train, x = 3.f);  // 3 * 32768 is infinite as float16
  const auto after = state();
  CHECK(float(std::get<0>(after)) == float(std::get<0>(before)));
  CHECK(testing::identical(std::get<1>(after), std::get<1>(before)));
  CHECK(testing::identical(std::get<2>(after), std::get<2>(before)));
  CHECK(testing::identical(std::get<3>(after), std::get<3>(before)));
  CHECK(std::int64_t(s.run(step)) == 2);
  CHECK(*s.run(any_tensor(scale)).data<float>() == 16384);

  s.run(train, x = 3.f);  // not any more
  CHECK(std::int64_t(s.run(step)) == 3);
  CHECK(float(std::get<0>(state())) < float(std::get<0>(before)));
}

TEST_CASE_FIXTURE(testing::own_graph, "the scale doubles after a period of finite gradients") {
  placeholder<float> x("x");
  variable<float> w("w", 0.f);
  const loss_scaler o(sgd(0.5f), {.initial = 4, .period = 3});
  const operation train = o.minimize(w * x);
  session s;
  s.run(initialize_all());
  const auto scale = [&] { return *s.run(any_tensor(o.scale())).data<float>(); };
  const float inf = std::numeric_limits<float>::infinity();
  for (const auto& [fed, then] : std::initializer_list<std::pair<float, float>>{{1, 4},
                                                                                {1, 4},
                                                                                {1, 8},
                                                                                {1, 8},
                                                                                {1, 8},
                                                                                {inf, 4},
                                                                                {1, 4},
                                                                                {1, 4},
                                                                                {1, 8},
                                                                                {inf, 4},
                                                                                {inf, 2},
                                                                                {inf, 1},
                                                                                {inf, 1},
                                                                                {1, 1},
                                                                                {-1, 1},
                                                                                {1, 2}}) {
    s.run(train, x = fed);
    CHECK(scale() == then);
  }
  CHECK(float(s.run(w)) == -4.5f);  // ten steps down and one up; the others were skipped
}

TEST_CASE_FIXTURE(testing::own_graph,
                  "gradients are divided by the scale before they are clipped") {
  variable<float, 2> w("w", 0.f);
  placeholder<float, 2> x("x");
  const loss_scaler o(sgd(1.f));
  const auto gradients = o.compute_gradients(sum(w * x));
  const operation train = o.apply_gradients(clip_by_global_norm(gradients, 1.0));
  session s;
  s.run(initialize_all());
  CHECK(ndarray<float, 2>(s.run(gradients[0].gradient, x = ndarray<float, 2>{3, 4})) ==
        ndarray<float, 2>{3, 4});
  s.run(train, x = ndarray<float, 2>{3, 4});
  const ndarray<float, 2> v = s.run(w);
  CHECK(v(0) == doctest::Approx(-0.6));
  CHECK(v(1) == doctest::Approx(-0.8));
}

TEST_CASE_FIXTURE(testing::own_graph, "options of a loss scaler are checked") {
  const auto said = [](loss_scaler_options options) {
    return testing::error_of([&] { loss_scaler(sgd(0.1f), options); });
  };
  CHECK(said({.initial = 0.5})
            .starts_with("invalid_argument: [loss_scaler] expects a first scale from 1 to 2^126, "
                         "and got 0.5 at "));
  CHECK(said({.period = 0})
            .starts_with("invalid_argument: [loss_scaler] expects a period of at least 1 step, and "
                         "got 0 at "));
}
