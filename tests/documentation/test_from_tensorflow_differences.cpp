// SPDX-License-Identifier: Apache-2.0
// What docs/from_tensorflow.md shows of what means something else.
#include <thread>

#include "op/modeling.hpp"
#include "train/training.hpp"

using namespace deft;
using testing::outcome_of;
using testing::own_graph;

TEST_CASE_FIXTURE(own_graph, "gradients of what the loss does not depend on, and comparisons") {
  variable<float, 2> v("v", ones()), w("w", ones());
  auto [dv, dw] = gradients(sum(v * 3.f), v, w);
  session s;
  s.run(initialize_all());
  CHECK(s.run(dv) == ndarray<float, 2>{3, 3});
  CHECK(s.run(dw) == ndarray<float, 2>{0, 0});
  CHECK(s.run(v == w) == ndarray<bool, 2>{true, true});
  CHECK(!same(v, w));
}

TEST_CASE_FIXTURE(own_graph, "a thread has no scopes, and the process's graph") {
  auto outer = on(device("/cpu:1"));
  std::string there, here;
  here = requested_device(constant(1.f));
  graph mine = current_graph();
  std::thread([&] {
    auto in_graph = as_default(mine);
    there = requested_device(constant(1.f));
  }).join();
  CHECK(here == "/cpu:1");
  CHECK(there.empty());
}

TEST_CASE_FIXTURE(own_graph, "a fed tensor stands for its value, and what made it does not run") {
  variable<float> v("v", 1.f);
  tensor<float> y = v.assign_add(1.f).value() * 2.f;
  session s;
  s.run(initialize_all());
  CHECK(s.run(y + 1.f, y = 5.f) == 6);
  CHECK(s.run(v) == 1);           // the update was not needed
  CHECK(s.run(v, v = 8.f) == 8);  // what is read, not the state
  CHECK(s.run(v) == 1);

  placeholder<float> x("x");
  CHECK(outcome_of([&] { s.run(v, x = 1.f); }).code == errc::invalid_argument);
}

TEST_CASE_FIXTURE(own_graph, "sizes that a run computes, and activations") {
  placeholder<float, dyn, 4> x("x");
  placeholder<std::int64_t> n("n"), i("i");
  auto z = constant({{0.f, 1.f, 0.f, 1.f}});
  any_tensor t = x;
  tensor<float, dyn, 4> checked(t);
  session s;
  const ndarray<float, dyn, 4> value{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
  CHECK(s.run(arange(n), n = 3) == ndarray<std::int64_t, dyn>{0, 1, 2});
  CHECK(s.run(arange(0, 10, 3)) == ndarray<std::int64_t, dyn>{0, 3, 6, 9});
  CHECK(s.run(zeros(shape<3>)) == ndarray<float, 3>{0, 0, 0});
  CHECK(s.run(fill(shape<dyn>, {n}, 7.f), n = 2) == ndarray<float, dyn>{7, 7});
  CHECK(s.run(slice(x, {i, 0}, shape<2, 4>), x = value, i = 1) ==
        ndarray<float, 2, 4>{{5, 6, 7, 8}, {9, 10, 11, 12}});
  CHECK(s.run(checked, x = value) == value);
  s.run(zeros_like(x), ones_like(x), random_normal_like(x), softmax(x, axis<0>), log_softmax(x),
        softplus(log1p(erf(x))), silu(x), gelu(x), sigmoid_cross_entropy(x, z), x = value);
}
