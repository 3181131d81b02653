// SPDX-License-Identifier: Apache-2.0
#include <deft/train/layers.hpp>

#include "differences.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;
using doctest::Approx;

TEST_CASE_FIXTURE(own_graph, "regularizers agree with plain loops") {
  placeholder<double, dyn> w("w");
  const any_tensor l1 = l1_regularizer(0.1)(w), l2 = l2_regularizer(0.1)(w);
  session s;
  const auto [a, b] = s.run(l1, l2, w = {1, -2, 3});
  CHECK(*a.data<double>() == Approx(0.1 * 6));
  CHECK(*b.data<double>() == Approx(0.1 * 14 / 2));
  check_differences({numbers({3, 2}, 0.37)},
                    [](const auto& x) { return l2_regularizer(0.3)(x[0]); });
  check_differences({numbers({3, 2}, 0.37)},
                    [](const auto& x) { return l1_regularizer(0.3)(x[0]); });
  check_error(
      [] { l2_regularizer(-1); },
      "invalid_argument: [l2_regularizer] expects a scale that is not negative, and got -1");
  check_error([] { l1_regularizer(NAN); }, "invalid_argument: [l1_regularizer] expects a scale");
  check_error([] { l2_regularizer(1)(any(dtype::int32, {3})); },
              "invalid_argument: [regularizer] expects floating weights, and got int32(3)");
}

TEST_CASE_FIXTURE(own_graph, "losses are collected by name scope") {
  variable<float, 2> w("w", ndarray<float, 2>{3, 4});
  check_error([] { total_loss(); },
              "not_found: [total_loss] the graph has no losses: see add_loss");
  const any_tensor shared = l2_regularizer(1)(w);
  std::vector<any_tensor> totals;
  for (int i = 0; i < 2; ++i) {
    const auto tower = name_scope(str("tower_", i));
    add_loss(mean(w * (i + 1.f)));
    const auto layer = name_scope("layer");
    add_loss(shared);
    add_loss(shared);  // counts once
    totals.push_back(total_loss(str("tower_", i)));
  }
  CHECK(losses().size() == 3);
  CHECK(losses("tower_0").size() == 2);
  CHECK(losses("tower_1/layer").size() == 1);
  CHECK(losses("tower").empty());
  check_error([] { total_loss("tower"); },
              "not_found: [total_loss] no losses were added in the name scope \"tower\"");
  session s;
  s.run(initialize_all());
  const auto values = s.run(totals);
  CHECK(*values[0].data<float>() == 3.5f + 12.5f);
  CHECK(*values[1].data<float>() == 7 + 12.5f);
  CHECK(*any_array(s.run(total_loss())).data<float>() == 3.5f + 12.5f + 7);
  const float together = s.run(mean(w) + total_loss<float>());
  CHECK(together == 3.5f + (3.5f + 12.5f + 7));
  static_assert(std::is_same_v<decltype(total_loss<float>("tower_0")), tensor<float>>);
  check_error([] { total_loss<float>("tower"); },
              "not_found: [total_loss] no losses were added in the name scope \"tower\"");
  check_error([] { total_loss<double>(); }, "invalid_argument: ");
  check_error([&] { add_loss(w); },
              "invalid_argument: [add_loss] expects a floating scalar, and got float(2)");
  check_error([&] { add_loss(any(dtype::int64, {})); },
              "invalid_argument: [add_loss] expects a floating scalar, and got int64");
}

TEST_CASE_FIXTURE(own_graph, "a layer's regularizer is a loss of every scope that calls it") {
  placeholder<float, dyn, 2> x("x");
  const initializer first(ndarray<float, 2, 2>{1, 2, 3, 4});
  for (int i = 0; i < 2; ++i) {
    const auto tower = name_scope(str("tower_", i));
    for (int twice = 0; twice < 2; ++twice)
      dense(x, 2, "fc", {.initializer = first, .regularizer = l2_regularizer(0.1), .shared = true});
  }
  CHECK(g.variables().size() == 1);  // the biases belong to results that nobody kept
  CHECK(losses("tower_0").size() == 1);
  CHECK(losses("tower_1").size() == 1);
  session s;
  s.run(initialize_all());
  CHECK(*any_array(s.run(total_loss("tower_1"))).data<float>() == Approx(1.5));
}

TEST_CASE_FIXTURE(own_graph, "every layer with weights adds the losses of its regularizer") {
  placeholder<float, dyn, 2> rows("rows");
  placeholder<float, dyn, 3, 2> sequence("sequence");
  placeholder<float, dyn, 4, 4, 2> images("images");
  const auto sum_of_ones = [](std::int64_t elements) {
    return 0.5 * static_cast<double>(elements);
  };
  const std::pair<const char*, double> expected[] = {{"dense", sum_of_ones(2 * 3)},
                                                     {"conv2d", sum_of_ones(3 * 3 * 2 * 5)},
                                                     {"lstm", sum_of_ones((2 + 4) * 16)},
                                                     {"gru", sum_of_ones((2 + 4) * (8 + 4))}};
  const regularizer penalty = l2_regularizer(1);
  std::vector<any_tensor> results;
  const auto within = [&](const char* name, auto write) {
    const auto scope = name_scope(name);
    results.push_back(any_tensor(write()));
  };
  const initializer first = ones();
  within("dense",
         [&] { return dense<3>(rows, "a", {.initializer = first, .regularizer = penalty}); });
  within("conv2d", [&] {
    return conv2d<5>(images, window<3>, "a", {.initializer = first, .regularizer = penalty});
  });
  within("lstm", [&] {
    return lstm<4>(sequence, "a", {.initializer = first, .regularizer = penalty}).outputs;
  });
  within("gru", [&] {
    return gru<4>(sequence, "a", {.initializer = first, .regularizer = penalty}).outputs;
  });
  session s;
  s.run(initialize_all());
  for (const auto& [name, total] : expected) {
    CAPTURE(std::string(name));
    CHECK(*any_array(s.run(total_loss(name))).data<float>() == Approx(total));
  }
}

TEST_CASE("losses live as long as the graph, and no longer") {
  graph g;
  {
    auto in = as_default(g);
    variable<float, 2> w("w", ones());
    add_loss(sum(w));
  }
  CHECK(g.size() > 0);
  CHECK(losses("", g).size() == 1);
  any_tensor kept = losses("", g)[0];
  g = graph();
  graph again = graph_of(kept);
  CHECK(losses("", again).empty());
  check_error([&] { add_loss(kept); }, "failed_precondition: the graph object is gone");
  CHECK(again.size() > 0);
  kept = any_tensor();
  CHECK(again.size() == 0);
}
