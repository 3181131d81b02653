// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deft/deft.hpp>

#include "modeling.hpp"

using namespace deft;
using testing::error_of;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "categorical draws classes with the probabilities of softmax") {
  placeholder<float, dyn, 4> logits("logits");
  const tensor<std::int64_t, dyn, dyn> drawn = categorical(logits, 20'000, {.seed = 3});
  const tensor<std::int64_t, dyn> one = categorical(logits);
  session s;
  const ndarray<float, dyn, 4> v{{std::log(1.f), std::log(2.f), -INFINITY, std::log(5.f)},
                                 {-INFINITY, -INFINITY, 1000, -INFINITY}};
  const auto [all, single] = s.run(drawn, one, logits = v);
  REQUIRE(all.extents() == dims{2, 20'000});
  REQUIRE(single.extents() == dims{2});
  CHECK(single(1) == 2);
  int counts[4] = {};
  for (std::int64_t i = 0; i < 20'000; ++i) {
    REQUIRE((all(0, i) >= 0 && all(0, i) < 4));
    ++counts[all(0, i)];
    CHECK(all(1, i) == 2);
  }
  CHECK(counts[2] == 0);
  for (const auto& [c, p] : {std::pair{0, 1.}, {1, 2.}, {3, 5.}})
    CHECK(std::abs(counts[c] / 20'000. - p / 8) < 0.02);
}

TEST_CASE_FIXTURE(own_graph, "categorical and bernoulli draw by the graph's and their own seed") {
  const auto logits = constant({{0.f, 1.f, 2.f, 0.5f}});
  const auto a = categorical(logits, 100, {.seed = 7}), b = categorical(logits, 100, {.seed = 7}),
             c = categorical(logits, 100, {.seed = 8});
  const auto p = bernoulli(shape<100>, 0.5f, {.seed = 7}),
             q = bernoulli(shape<100>, 0.5f, {.seed = 7});
  session s;
  const auto [va, vb, vc, vp, vq] = s.run(a, b, c, p, q);
  CHECK(va == vb);
  CHECK_FALSE(va == vc);
  CHECK(vp == vq);
  CHECK_FALSE(s.run(a) == va);  // the next step's
}

TEST_CASE_FIXTURE(own_graph, "categorical says what it does not take") {
  const any_tensor integers = constant({1, 2}), scalar = constant(1.f);
  for (const any_tensor& x : {integers, scalar})
    CHECK(error_of([&] {
            categorical(x);
          }).starts_with("invalid_argument: [categorical] expects floating logits"));
  CHECK(error_of([&] {
          categorical(any_tensor(constant({1.f})), -2);
        }).starts_with("invalid_argument: [categorical] expects"));
}
