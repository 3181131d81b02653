// SPDX-License-Identifier: Apache-2.0
#include <deft/deft.hpp>

#include "op/modeling.hpp"
#include "testing.hpp"

using namespace deft;

TEST_CASE_FIXTURE(testing::own_graph, "a variable of bfloat16 is trained by float updates") {
  placeholder<bfloat16, dyn, 4> x("x");
  variable<bfloat16, 4> w("w", ones());
  auto loss = mean(square(cast<float>(sum(x * w, axis<1>)) - 1.f));
  auto train = adam(0.05f).minimize(loss);
  session s;
  s.run(initialize_all());
  ndarray<bfloat16, dyn, 4> rows(2);
  for (int i = 0; i < 4; ++i) rows(0, i) = i, rows(1, i) = 1;
  float first = s.run(loss, x = rows), last = 0;
  for (int i = 0; i < 200; ++i) last = s.run(train, loss, x = rows);
  CHECK(first == 17);
  CHECK(last < 0.001f);
}

TEST_CASE_FIXTURE(testing::own_graph, "a model is computed in bfloat16, with variables of float") {
  variable<float, 8, 8> w1("w1", random_normal(0.f, 0.5f)), w2("w2", random_normal(0.f, 0.5f));
  placeholder<float, 4, 8> x("x");
  auto half = compute_in<bfloat16>();
  auto hidden = relu(matmul(x, w1));
  auto y = matmul(hidden, w2);
  const tensor<float> loss = mean(square(y - 1.f));
  const operation train = adam(0.02f).minimize(loss);
  session s;
  s.run(initialize_all());
  ndarray<float, 4, 8> rows;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 8; ++j) rows(i, j) = static_cast<float>((i * 3 + j * 5) % 7) / 7;
  float last = 0;
  for (int i = 0; i < 200; ++i) last = s.run(train, loss, x = rows);
  CHECK(last < 0.05f);
}

TEST_CASE_FIXTURE(testing::own_graph, "small gradients of float16 need a loss scaler") {
  variable<float16> w("w", 0.f);
  const auto loss = cast<float>(w) * 1e-8f;  // a gradient that float16 does not have
  const loss_scaler o(sgd(0.5f));
  auto train = o.minimize(loss, global_step());
  session s;
  s.run(initialize_all());
  s.run(train);
  const any_variable master(current_graph().find_variable("w/master"));
  CHECK(*s.run(any_tensor(master)).data<float>() == doctest::Approx(-0.5e-8).epsilon(0.001));
  const auto gradient = *s.run(o.compute_gradients(loss)[0].gradient).data<float>();
  CHECK(gradient == doctest::Approx(1e-8).epsilon(0.001));
}
