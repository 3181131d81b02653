// SPDX-License-Identifier: Apache-2.0
#include <deft/train/layers_normalization.hpp>
#include <deft/train/optimizers.hpp>

#include "differences.hpp"

using namespace deft;
using namespace deft::ext;
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
                  "rms_norm divides rows by the roots of their mean squares, in one pass") {
  placeholder<double, dyn, 4> x("x");
  placeholder<double, 4> scale("scale");
  const tensor<double, dyn, 4> y = rms_norm(x, scale, 0.01);
  session s;
  const any_array in = numbers({3, 4}), by = numbers({4}, 1);
  const any_array got = s.run(any_tensor(y), feed(any_tensor(x), in), feed(any_tensor(scale), by));
  for (std::int64_t row = 0; row < 3; ++row) {
    double squares = 0;
    for (std::int64_t i = 0; i < 4; ++i) squares += std::pow(in.data<double>()[row * 4 + i], 2) / 4;
    for (std::int64_t i = 0; i < 4; ++i)
      CHECK(got.data<double>()[row * 4 + i] ==
            Approx(in.data<double>()[row * 4 + i] / std::sqrt(squares + 0.01) *
                   by.data<double>()[i]));
  }
  int kernels = 0;
  for (const node_def& n :
       s.describe(any_tensor(y), feed(any_tensor(x), in), feed(any_tensor(scale), by)).placed.nodes)
    kernels += n.op->role == op_role::compute;
  CHECK(kernels == 1);
  CHECK(error_of([&] {
          rms_norm(any_tensor(x), any_tensor(x));
        }).starts_with("invalid_argument: [rms_norm] expects vectors as long as the last axis"));
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
  check_differences({numbers({3, 4}), numbers({4}, 1)},
                    [](const auto& x) { return rms_norm(x[0], x[1]); });
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

TEST_CASE_TEMPLATE("normalizations keep numbers that are large, or far from 0", T, float, double) {
  own_graph own;
  const bool single = std::is_same_v<T, float>;
  placeholder<T, dyn, 2> x("x");
  const any_tensor y = batch_norm(x, "bn", {.momentum = 0, .epsilon = 1e-12});
  const any_tensor flagged =
      batch_norm(x, "flagged", {.training = constant(true), .epsilon = 1e-12});
  const any_variable mean_now(own.g.find_variable("bn/moving_mean")),
      variance_now(own.g.find_variable("bn/moving_variance"));
  const operation update = update_moving_averages();
  placeholder<T, dyn, 64> rows("rows");
  const any_tensor z = layer_norm(rows, "ln", {.epsilon = 1e-12});
  const any_tensor w = constant(ndarray<T, 2>{1, 2});
  const any_tensor dx = plan::gradients(sum(y * y * y * w), std::vector<any_tensor>{x}).at(0);
  session s;
  struct {
    double off, apart;
  } const cases[] = {{1e5, 1},
                     {1e6, 1},
                     {-3e6, 2},
                     {0, 1},
                     {0, 2e30},
                     {1e30, 1e30},
                     {0, single ? 6e38 : 1.7e308},
                     {single ? 2e38 : 1e308, single ? 1e38 : 5e307},
                     {0, 1e12},
                     {0, 1e17}};
  for (const auto& each : cases) {
    const double off = each.off, apart = each.apart;
    CAPTURE(off);
    CAPTURE(apart);
    s.run(initialize_all());
    constexpr std::int64_t n = 64;
    ndarray<T, dyn, 2> columns(n);
    ndarray<T, dyn, 64> wide(2);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t k = 0; k < 2; ++k) {
        const double at = off + (i % 2 == k ? -0.5 : 0.5) * apart;
        columns(i, k) = wide(k, i) = static_cast<T>(at);
      }
    const auto [got, also, by_rows, d] =
        s.run(y, flagged, any_tensor(z), dx, update, feed(any_tensor(x), columns.array()),
              feed(any_tensor(rows), wide.array()));
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t k = 0; k < 2; ++k) {
        const double sign = i % 2 == k ? -1 : 1;
        CHECK(got.template data<T>()[2 * i + k] == Approx(sign));
        CHECK(also.template data<T>()[2 * i + k] == Approx(sign));
        CHECK(by_rows.template data<T>()[n * k + i] == Approx(sign));
        // Each of y is at an extreme: its derivatives cancel but for rounding.
        CHECK(std::abs(d.template data<T>()[2 * i + k]) * apart < 1e-3);
      }
    const T m = s.run(mean_now).template data<T>()[0],
            v = s.run(variance_now).template data<T>()[0];
    CHECK(m == Approx(off).epsilon(1e-6).scale(apart));
    const double variance = 0.25 * apart * apart;
    if (variance < static_cast<double>(std::numeric_limits<T>::max()))
      CHECK(v == Approx(variance).epsilon(1e-4));
    else
      CHECK(v == std::numeric_limits<T>::max());
  }
}

TEST_CASE_TEMPLATE("gradients of normalizations are right for large numbers", T, float, double) {
  // Of x and of 2^k x they are the same but for the factor, where epsilon is nothing.
  own_graph own;
  placeholder<T, 4, 3> x("x");
  const any_tensor w = constant(ndarray<T, 4, 3>{1, -2, 3, 0.5f, 2, 1, -1, 4, 2, 0, 1, -3});
  const auto gradient = [&](const any_tensor& y) {
    return plan::gradients(sum(y * w), std::vector<any_tensor>{x}).at(0);
  };
  const any_tensor of_batch = gradient(batch_norm(x, "bn", {.epsilon = 0})),
                   of_rows = gradient(layer_norm(x, "ln", {.epsilon = 0}));
  session s;
  s.run(initialize_all());
  const ndarray<T, 4, 3> small{1, 2, -3, 0.5f, 1, 2, 4, -1, 3, 2, 7, 1};
  const int k = std::is_same_v<T, float> ? 100 : 900;
  ndarray<T, 4, 3> large = small;
  for (T& v : large) v = std::ldexp(v, k);
  const auto [a, b] = s.run(of_batch, of_rows, x = small);
  const auto [c, d] = s.run(of_batch, of_rows, x = large);
  for (int i = 0; i < 12; ++i) {
    CHECK(std::ldexp(double(c.template data<T>()[i]), k) ==
          Approx(double(a.template data<T>()[i])));
    CHECK(std::ldexp(double(d.template data<T>()[i]), k) ==
          Approx(double(b.template data<T>()[i])));
  }
}

TEST_CASE_FIXTURE(own_graph, "an empty batch moves neither averages nor variables") {
  placeholder<float, dyn, 2> x("x");
  placeholder<bool> training("training");
  const any_tensor y = batch_norm(x, "bn"), z = batch_norm(x, "flagged", {.training = training});
  const operation all = group(update_moving_averages(), sgd(1).minimize(sum(y * 3) + sum(z * z)));
  session s;
  s.run(initialize_all());
  const auto values = [&] {
    std::vector<any_array> all_of;
    for (const node_ref& v : g.variables()) all_of.push_back(s.run(any_variable(v)));
    return all_of;
  };
  s.run(all, x = {{1, 2}, {3, 5}}, training = true);
  const auto before = values();
  s.run(all, x = ndarray<float, dyn, 2>(0), training = true);
  const auto after = values();
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(identical(after[i], before[i]));
  CHECK(s.run(y, x = {{7, -7}}) == any_array(ndarray<float, 1, 2>{-6, -6}.array()));  // beta
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
