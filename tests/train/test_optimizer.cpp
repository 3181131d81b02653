// SPDX-License-Identifier: Apache-2.0
#include <deft/train/optimizers.hpp>

#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using doctest::Approx;
using testing::outcome_of;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "sgd takes the gradient times the rate") {
  variable<float, 2> w("w", ndarray<float, 2>{1, 2});
  variable<double> b("b", 3.0);
  // loss = sum(w * w) + b * b, so that the gradients are 2 w and 2 b.
  auto loss = cast<double>(sum(w * w)) + b * b;
  operation train = sgd(0.1).minimize(loss);
  session s;
  s.run(initialize_all());
  s.run(train);
  auto [v, u] = s.run(w, b);
  CHECK(v(0) == Approx(0.8));
  CHECK(v(1) == Approx(1.6));
  CHECK(u == Approx(2.4));
  s.run(train);
  CHECK(s.run(w)(1) == Approx(1.28));
}

TEST_CASE_FIXTURE(own_graph, "adagrad is TensorFlow's: rate * g / sqrt(sum of squares)") {
  variable<float, 2> w("w", ndarray<float, 2>{1, -2});
  // The gradient is w itself.
  operation train = adagrad(0.5, 0.1).minimize(sum(w * w) * 0.5f);
  session s;
  s.run(initialize_all());
  s.run(train);
  // 1 - 0.5 * 1 / sqrt(0.1 + 1); -2 + 0.5 * 2 / sqrt(0.1 + 4)
  auto v = s.run(w);
  CHECK(v(0) == Approx(0.5232688));
  CHECK(v(1) == Approx(-1.5061353));
  s.run(train);
  // 0.5232688 - 0.5 * 0.5232688 / sqrt(1.1 + 0.5232688²) and so on
  v = s.run(w);
  CHECK(v(0) == Approx(0.3000495));
  CHECK(v(1) == Approx(-1.2077222));

  graph other;
  auto in = as_default(other);
  variable<float> x("x", 2.f);
  operation step = adagrad(0.1).minimize(x * 3.f);
  session t;
  t.run(initialize_all());
  t.run(step);
  CHECK(t.run(x) == Approx(2 - 0.1 * 3 / std::sqrt(0.1 + 9)));  // slots start at 0.1
}

TEST_CASE_FIXTURE(own_graph,
                  "slots are on their variables' devices, and only the gradient is sent") {
  session s({.cpu_devices = 2});
  auto w = on(device("/cpu:1"), [] { return variable<float, 2>("w", ones()); });
  placeholder<float, 2> x("x");
  tensor<float> loss = sum(w * x);
  operation train = adagrad(0.1).minimize(loss);
  s.run(initialize_all());
  s.run(train, x = ndarray<float, 2>{1, 2});
  node_ref slot = g.find_variable("w/adagrad");
  REQUIRE(slot);
  CHECK(!slot->variable()->trainable);
  any_tensor a(output{slot, 0});
  CHECK(s.device_of(a) == s.device_of(w));
  CHECK(s.device_of(w) == "/job:localhost/replica:0/task:0/cpu:1");
  any_array value = s.run(a);
  CHECK(value.data<float>()[1] == Approx(4.1));
  std::string e = s.explain(train, x = ndarray<float, 2>{1, 2});
  INFO(e);
  std::size_t crossings = 0;
  for (std::size_t at = 0; (at = e.find("crosses from", at)) != e.npos; ++at) ++crossings;
  CHECK(crossings <= 2);
}

TEST_CASE_FIXTURE(own_graph, "minimize updates the variables it is given, and no others") {
  variable<float> a("a", 1.f), b("b", 1.f);
  const auto step = global_step();
  auto loss = a * 2.f + b * 3.f;
  const operation first = sgd(1).minimize(loss, {a}), second = sgd(1).minimize(loss, {b}, step);
  session s;
  s.run(initialize_all());
  s.run(first);
  CHECK(s.run(a) == -1);
  CHECK(s.run(b) == 1);
  s.run(second);
  CHECK(s.run(a) == -1);
  CHECK(s.run(b) == -2);
  CHECK(s.run(step) == 1);
  // A single one needs no list.
  s.run(sgd(1).minimize(loss, a));
  s.run(sgd(1).minimize(loss, any_variable(b), step));
  CHECK(s.run(a) == -3);
  CHECK(s.run(b) == -5);
  CHECK(s.run(step) == 2);
}

TEST_CASE_FIXTURE(own_graph, "minimize adds to the global step after the updates") {
  variable<float> w("w", 1.f);
  auto step = global_step();
  CHECK(same(step, global_step()));
  operation train = sgd(0.5).minimize(w * w, step);
  session s;
  s.run(initialize_all());
  CHECK(s.run(step) == 0);
  for (int i = 0; i < 3; ++i) s.run(train);
  CHECK(s.run(step) == 3);
  CHECK(s.run(w) == 0);
}

TEST_CASE_FIXTURE(own_graph,
                  "minimize skips variables that the loss does not use, or fails if none is left") {
  variable<float> used("used", 1.f), idle("idle", 5.f);
  variable<float> frozen("frozen", 7.f, {.trainable = false});
  variable<std::int64_t> counter("counter", 3);  // an integer has no gradient
  operation train = sgd(0.5).minimize(used * used * frozen);
  session s;
  s.run(initialize_all());
  s.run(train);
  auto [a, b, c] = s.run(used, idle, frozen);
  CHECK(a == -6);
  CHECK(b == 5);
  CHECK(c == 7);

  placeholder<float> x("x");
  unsigned line = __LINE__ + 1;
  auto o = outcome_of([&] { sgd(0.5).minimize(x * 2.f); });
  CAPTURE(o);
  CHECK(o.code == errc::invalid_argument);
  CHECK(o.says("[minimize]"));
  CHECK(o.says("no trainable variable"));
  CHECK(o.line == line);
}

TEST_CASE_FIXTURE(own_graph, "a loss that is not a floating scalar is refused") {
  variable<float, 3> w("w", ones());
  variable<int> n("n", 1);
  auto o = outcome_of([&] { sgd(0.5).minimize(any_tensor(w * 2.f)); });
  CAPTURE(o);
  CHECK(o.code == errc::invalid_argument);
  CHECK(o.says("[minimize] expects a scalar loss, and got float(3): use mean(loss)"));
  const unsigned line = __LINE__ + 1;
  o = outcome_of([&] { sgd(0.5).minimize(n * 2); });
  CAPTURE(o);
  CHECK(o.code == errc::invalid_argument);
  CHECK(o.line == line);
}
