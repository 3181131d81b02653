// SPDX-License-Identifier: Apache-2.0
#include <deft/train/layers_normalization.hpp>
#include <deft/train/optimizers.hpp>

#include "differences.hpp"

using namespace deft;
using namespace testing;
using doctest::Approx;

namespace {

/// The mean and the variance of the elements of x at begin, begin + step, ….
std::pair<double, double> moments(const any_array& x, std::int64_t begin, std::int64_t step,
                                  std::int64_t n) {
  double m = 0, v = 0;
  for (std::int64_t i = 0; i < n; ++i) m += x.data<double>()[begin + i * step] / double(n);
  for (std::int64_t i = 0; i < n; ++i)
    v += std::pow(x.data<double>()[begin + i * step] - m, 2) / double(n);
  return {m, v};
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "layer_norm normalizes each row, by a plain loop") {
  placeholder<double, dyn, 3, 4> x("x");
  variable<double, 4> scale("scale", ndarray<double, 4>{1, 2, 3, 4});
  variable<double, 4> offset("offset", ndarray<double, 4>{0.5, 0, -1, 2});
  const tensor<double, dyn, 3, 4> y = layer_norm(x, scale, offset, 0.01);
  const tensor<double, dyn, 3, 4> named = layer_norm(x, "norm");
  session s;
  s.run(initialize_all());
  const any_array in = numbers({2, 3, 4});
  const auto [a, b] = s.run(any_tensor(y), any_tensor(named), feed(any_tensor(x), in));
  for (std::int64_t row = 0; row < 6; ++row) {
    const auto [m, v] = moments(in, row * 4, 1, 4);
    for (std::int64_t i = 0; i < 4; ++i) {
      const double centred = in.data<double>()[row * 4 + i] - m;
      const double offsets[] = {0.5, 0, -1, 2};
      CHECK(a.data<double>()[row * 4 + i] ==
            Approx(double(i + 1) * centred / std::sqrt(v + 0.01) + offsets[i]));
      CHECK(b.data<double>()[row * 4 + i] == Approx(centred / std::sqrt(v + 0.001)));
    }
  }
}

TEST_CASE_FIXTURE(own_graph,
                  "batch_norm trains with the batch's moments and infers with averages") {
  placeholder<double, dyn, 2, 3> x("x");
  placeholder<bool> training("training");
  const tensor<double, dyn, 2, 3> trained = batch_norm(x, "bn", {.momentum = 0.75});
  const tensor<double, dyn, 2, 3> inferred = batch_norm(x, "bn", {.training = false});
  tensor<double, dyn, 2, 3> either;
  {
    const auto scope = name_scope("flagged");
    either = batch_norm(x, "bn", {.training = training, .momentum = 0.75});
  }
  CHECK(trainable_variables(g).size() == 4);
  const any_variable mean_now(g.find_variable("bn/moving_mean")),
      variance_now(g.find_variable("bn/moving_variance"));
  const any_variable flagged(g.find_variable("flagged/bn/moving_mean"));
  const operation update = update_moving_averages(), one = update_moving_averages("flagged");
  session s;
  s.run(initialize_all());
  double average[3] = {0, 0, 0}, average_variance[3] = {1, 1, 1};
  for (int step = 0; step < 3; ++step) {
    const any_array in = numbers({4, 2, 3}, 0.3 + step);
    const auto in_of_step = feed(any_tensor(x), in);
    const any_array before =
        s.run(any_tensor(either), in_of_step, feed(any_tensor(training), any_array::scalar(false)));
    const any_array y = s.run(any_tensor(trained), update, in_of_step,
                              feed(any_tensor(training), any_array::scalar(true)));
    const auto [m, v, z, f] = s.run(any_tensor(mean_now), any_tensor(variance_now),
                                    any_tensor(inferred), any_tensor(flagged), in_of_step);
    for (std::int64_t k = 0; k < 3; ++k) {
      const auto [mean, variance] = moments(in, k, 3, 8);
      for (std::int64_t i = 0; i < 8; ++i) {
        const double e = in.data<double>()[i * 3 + k];
        CHECK(y.data<double>()[i * 3 + k] == Approx((e - mean) / std::sqrt(variance + 0.001)));
        CHECK(before.data<double>()[i * 3 + k] ==
              Approx((e - average[k]) / std::sqrt(average_variance[k] + 0.001)));
      }
      average[k] = 0.75 * average[k] + 0.25 * mean;
      average_variance[k] = 0.75 * average_variance[k] + 0.25 * variance;
      CHECK(m.data<double>()[k] == Approx(average[k]));
      CHECK(f.data<double>()[k] == Approx(average[k]));
      CHECK(v.data<double>()[k] == Approx(average_variance[k]));
      for (std::int64_t i = 0; i < 8; ++i)
        CHECK(z.data<double>()[i * 3 + k] == Approx((in.data<double>()[i * 3 + k] - average[k]) /
                                                    std::sqrt(average_variance[k] + 0.001)));
    }
  }
  const any_array before = s.run(any_tensor(flagged));
  s.run(one, feed(any_tensor(x), numbers({4, 2, 3}, 5)),
        feed(any_tensor(training), any_array::scalar(false)));
  CHECK(identical(any_array(s.run(any_tensor(flagged))), before));
}

TEST_CASE("gradients of normalizations agree with central differences") {
  check_differences({numbers({3, 4}), numbers({4}, 1), numbers({4}, 0)},
                    [](const auto& x) { return layer_norm(x[0], x[1], x[2]); });
  check_differences(
      {numbers({3, 2}), numbers({2}, 0.1), numbers({2}, 1.5), numbers({2}, 1), numbers({2}, 0)},
      [](const auto& x) { return batch_norm(x[0], x[1], x[2], x[3], x[4]); });
  own_graph own;
  placeholder<double, dyn, 3> x("x");
  const any_tensor y = batch_norm(x, "bn");
  const std::vector<point> at{{x, numbers({4, 3})},
                              {any_variable(own.g.find_variable("bn/gamma")), numbers({3}, 1)},
                              {any_variable(own.g.find_variable("bn/beta")), numbers({3})}};
  check_differences(y, at);
  // So do those of the gradient: mean and variance depend on x.
  const auto gradient_of = [&](const any_tensor& normalized) {
    return plan::gradients(sum(square(normalized) * normalized), std::vector<any_tensor>{x}).at(0);
  };
  check_differences(gradient_of(y), at);
  for (const bool training : {true, false}) {
    CAPTURE(training);
    const any_tensor flagged = batch_norm(x, "bn", {.training = constant(training)});
    auto more = at;
    more.push_back({any_variable(own.g.find_variable("bn/moving_mean")), numbers({3}, 0)});
    more.push_back({any_variable(own.g.find_variable("bn/moving_variance")), numbers({3}, 2)});
    check_differences(flagged, more);
    check_differences(gradient_of(flagged), more);
  }
}

TEST_CASE_FIXTURE(own_graph, "the gradient of batch_norm is one pass after the sums of another") {
  placeholder<float, 32, 16, 16, 8> x("x"), dy("dy");
  const any_tensor y = batch_norm(x, "bn");
  const any_variable gamma(g.find_variable("bn/gamma")), beta(g.find_variable("bn/beta"));
  const auto d = plan::gradients(sum(y * dy), std::vector<any_tensor>{x, gamma, beta});
  session s;
  const any_array in(dtype::float32, {32, 16, 16, 8});
  const plan_description plan =
      s.describe(d[0], d[1], d[2], feed(any_tensor(x), in), feed(any_tensor(dy), in));
  std::vector<std::string> passes;
  for (const node_def& n : plan.placed.nodes)
    if (n.op->role != op_role::feed &&
        (std::ranges::any_of(n.outputs, [&](const auto& t) { return t.shape == in.shape(); }) ||
         std::ranges::any_of(n.inputs, [&](const auto& i) {
           return plan.placed.nodes[i.node].outputs[i.port].shape == in.shape();
         })))
      passes.push_back(std::string(n.name));
  CAPTURE(join(passes, " "));
  CHECK(passes.size() == 3);  // mean and variance, sums, result
}

TEST_CASE_FIXTURE(own_graph, "errors of normalizations") {
  const any_tensor x = any(dtype::float32, {4, 3}), v = any(dtype::float32, {4});
  check_error([&] { layer_norm(x, v, v); },
              "invalid_argument: [layer_norm] expects vectors as long as the last axis of "
              "float(4,3), and got float(4)");
  check_error([&] { batch_norm(x, "bn", {.momentum = 2}); },
              "invalid_argument: [batch_norm] expects a momentum from 0 to 1, and got 2");
  check_error([&] { batch_norm(x, "bn", {.epsilon = -1}); },
              "invalid_argument: [batch_norm] expects an epsilon that is not negative, and got -1");
  check_error([&] { batch_norm(x, "bn", {.training = any(dtype::int32, {})}); },
              "invalid_argument: [training] expects a scalar of bool, and got int32");
  check_error([&] { batch_norm(v, "vector"); },
              "invalid_argument: [batch_norm] expects a floating tensor of rank 2 or more");
  check_error([&] { update_moving_averages("elsewhere"); },
              "not_found: [update_moving_averages] no batch_norm was written in training in the "
              "name scope elsewhere");
}

TEST_CASE_FIXTURE(own_graph, "a batch_norm that is used twice moves its averages twice") {
  placeholder<float, dyn, 1> x("x"), y("y");
  const tensor<float, dyn, 1> first = batch_norm(x, "bn", {.momentum = 0.5});
  const tensor<float, dyn, 1> second = batch_norm(y, "bn", {.momentum = 0.5});
  const any_variable average(g.find_variable("bn/moving_mean"));
  const operation update = update_moving_averages();
  session s;
  s.run(initialize_all());
  s.run(first, second, update, x = {{1}, {3}}, y = {{5}, {7}});
  CHECK(*s.run(average).data<float>() == Approx((0 * 0.5 + 2 * 0.5) * 0.5 + 6 * 0.5));
}
