// SPDX-License-Identifier: Apache-2.0
#include <deft/train/clip.hpp>
#include <deft/train/optimizers.hpp>

#include <cmath>
#include <limits>

#include "training.hpp"

using namespace deft;
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
