// SPDX-License-Identifier: Apache-2.0
#include <deft/train/clip.hpp>
#include <deft/train/optimizers.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using doctest::Approx;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "values and norms of tensors are clipped") {
  placeholder<float, 2> x("x");
  session s;
  CHECK(s.run(clip_by_value(x, -1.f, 2.f), x = {-3, 5}) == ndarray<float, 2>{-1, 2});
  const any_tensor clipped = clip_by_norm(x, 1);
  auto run = [&](float a, float b) {
    const any_array v = s.run(clipped, x = {a, b});
    return std::pair(v.data<float>()[0], v.data<float>()[1]);
  };
  CHECK(run(0.3f, -0.4f) == std::pair(0.3f, -0.4f));
  CHECK(run(3, -4).first == Approx(0.6));
  CHECK(run(3, -4).second == Approx(-0.8));
  CHECK(run(0, 0) == std::pair(0.f, 0.f));
}

TEST_CASE_FIXTURE(own_graph, "a typed tensor keeps its type when it is clipped by its norm") {
  placeholder<float, dyn, 2> x("x");
  auto clipped = clip_by_norm(x * 2.f, 1);
  static_assert(std::is_same_v<decltype(clipped), tensor<float, dyn, 2>>);
  static_assert(std::is_same_v<decltype(clip_by_norm(any_tensor(x), 1)), any_tensor>);
  session s;
  const auto v = s.run(clipped, x = {{3, 4}});
  CHECK(v(0, 0) == Approx(0.6));
  CHECK(v(0, 1) == Approx(0.8));

  // The gradient of gathered rows is one of rows, and stays one.
  variable<float, 3, 2> w("w", ones());
  auto [dw] = gradients(sum(gather(w, constant({0, 0}))), w);
  auto limited = clip_by_norm(dw, 1);
  static_assert(std::is_same_v<decltype(limited), tensor<float, 3, 2>>);
  s.run(initialize_all());
  const auto rows = s.run(limited);
  CHECK(rows(0, 1) == Approx(std::sqrt(0.5)));
  CHECK(rows(2, 1) == 0);
}

TEST_CASE_FIXTURE(own_graph, "gradients are clipped by their global norm") {
  variable<float, 2> w("w", zeros());
  variable<double> u("u", 0.), idle("idle", 0.);
  placeholder<float, 2> x("x");
  const sgd o(1);
  // The gradients are x and 12; the last variable has none.
  const auto gradients = o.compute_gradients(cast<double>(sum(w * x)) + u * 12.);
  REQUIRE(gradients.size() == 3);
  const any_tensor norm = global_norm(gradients);
  session s;
  CHECK(*any_array(s.run(norm, x = {3, 4})).data<double>() == Approx(13));

  auto trained = [&](const std::vector<gradient_of_variable>& g, float a, float b) {
    s.run(initialize_all());
    s.run(o.apply_gradients(g), x = {a, b});
    const auto v = s.run(w);
    return std::array{static_cast<double>(v(0)), static_cast<double>(v(1)), s.run(u)};
  };
  const auto limited = clip_by_global_norm(gradients, 6.5);
  CHECK(!limited[2].gradient.valid());
  auto v = trained(limited, 3, 4);
  CHECK(v[0] == Approx(-1.5));
  CHECK(v[1] == Approx(-2));
  CHECK(v[2] == Approx(-6));
  v = trained(clip_by_global_norm(gradients, 100), 3, 4);
  CHECK(v[0] == -3);
  CHECK(v[2] == -12);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const double e : trained(limited, infinity, 1)) CHECK(std::isnan(e));

  v = trained(clip_by_value(gradients, -1, 3.5), 3, -4);
  CHECK(v == std::array{-3., 1., -3.5});
  v = trained(clip_by_norm(gradients, 2.5), 3, -4);
  CHECK(v[0] == Approx(-1.5));
  CHECK(v[1] == Approx(2));
  CHECK(v[2] == Approx(-2.5));

  CHECK(testing::error_of([&] {
          global_norm({gradients[2]});
        }).starts_with("invalid_argument: [global_norm] there are no gradients at test_clip.cpp"));
}

TEST_CASE_FIXTURE(own_graph, "the norm of rows of one index is that of their sum") {
  constexpr int n = 20;
  variable<float, 4, 1> w("w", zeros());
  placeholder<float, n, 1> x("x");
  placeholder<std::int32_t, n> ids("ids");
  const auto gradients = sgd(1).compute_gradients(sum(gather(w, ids) * x));
  const any_tensor norm = global_norm(gradients);
  const auto limited = clip_by_global_norm(gradients, 1);
  session s;
  s.run(initialize_all());
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const std::vector<std::int32_t> all_the_same(n, 2);
  for (int i = 0; i < 200; ++i) {
    ndarray<float, n, 1> rows;
    for (float& r : rows) r = uniform(random);
    // They nearly cancel each other.
    rows.begin()[n - 1] = -std::accumulate(rows.begin(), rows.begin() + n - 1, 0.f);
    const double exact = std::accumulate(rows.begin(), rows.begin() + n, 0.0);
    const double got = s.run(norm, x = rows, ids = all_the_same).item<double>();
    CHECK(got == Approx(std::abs(exact)).epsilon(1e-5).scale(1));
    s.run(sgd(1).apply_gradients(limited), x = rows, ids = all_the_same);
  }
  for (const float v : s.run(w)) CHECK(std::isfinite(v));
}

TEST_CASE_FIXTURE(own_graph, "squares that overflow, and limits that are none") {
  placeholder<float, 2> x("x");
  session s;
  const any_array clipped = s.run(clip_by_norm(x, 1), x = {3e19f, 4e19f});
  CHECK(clipped.data<float>()[0] == Approx(0.6));
  CHECK(clipped.data<float>()[1] == Approx(0.8));
  const any_tensor of[] = {x}, slope = plan::gradients(sum(clip_by_norm(x, 1)), of)[0];
  CHECK(s.run(slope, x = {0, 0}) == ndarray<float, 2>{1, 1}.array());
  variable<float, 2> w("w", zeros());
  const auto gradients = sgd(1).compute_gradients(sum(w * x));
  CHECK(s.run(global_norm(gradients), x = {3e19f, 4e19f}).item<double>() == Approx(5e19));
  CHECK(testing::error_of([&] {
          clip_by_norm(any_tensor(constant(3)), 1);
        }).starts_with("invalid_argument: [clip_by_norm] expects a floating tensor, and got int"));
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double limit : {0., -1., nan, std::numeric_limits<double>::infinity()}) {
    CAPTURE(limit);
    CHECK(
        testing::error_of([&] {
          clip_by_norm(x, limit);
        }).starts_with("invalid_argument: [clip_by_norm] expects a finite norm above 0, and got "));
    CHECK(
        testing::error_of([&] {
          clip_by_global_norm(gradients, limit);
        }).starts_with("invalid_argument: [clip_by_global_norm] expects a finite norm above 0, "));
  }
}
