// SPDX-License-Identifier: Apache-2.0
#include <deft/train/schedule.hpp>

#include <cmath>
#include <limits>
#include <numbers>

#include "training.hpp"

using namespace deft;
using namespace deft::ext;
using doctest::Approx;
using testing::own_graph;

namespace {

/// Compares a schedule of a fed step with a closed form.
template <class F>
void follow(const tensor<float>& rate, const placeholder<std::int64_t>& step, F expected) {
  session s;
  for (const std::int64_t n : {0, 1, 5, 9, 10, 11, 19, 20, 21, 25, 100}) {
    CAPTURE(n);
    CHECK(s.run(rate, step = n) == Approx(expected(static_cast<double>(n))));
  }
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "exponential decay may be smooth or a staircase") {
  placeholder<std::int64_t> step("step");
  follow(exponential_decay(0.5, step, 10, 0.9), step,
         [](double n) { return 0.5 * std::pow(0.9, n / 10); });
  follow(exponential_decay(0.5, step, 10, 0.9, {.staircase = true}), step,
         [](double n) { return 0.5 * std::pow(0.9, std::floor(n / 10)); });
}

TEST_CASE_FIXTURE(own_graph, "piecewise constant") {
  placeholder<std::int64_t> step("step");
  follow(piecewise_constant(step, {10, 20}, {1, 0.5, 0.1}), step, [](double n) {
    return n <= 10 ? 1 : n <= 20 ? 0.5 : 0.1;
  });
  session s;
  CHECK(s.run(piecewise_constant(step, {}, {0.25})) == 0.25f);
}

TEST_CASE_FIXTURE(own_graph, "polynomial decay may end or cycle") {
  placeholder<std::int64_t> step("step");
  follow(polynomial_decay(0.5, step, 10, {.end_rate = 0.1}), step,
         [](double n) { return 0.4 * (1 - std::min(n, 10.) / 10) + 0.1; });
  follow(polynomial_decay(0.5, step, 10, {.end_rate = 0.1, .power = 2, .cycle = true}), step,
         [](double n) {
           const double whole = 10 * std::max(std::ceil(n / 10), 1.);
           return 0.4 * std::pow(1 - n / whole, 2) + 0.1;
         });
}

TEST_CASE_FIXTURE(own_graph, "cosine decay") {
  placeholder<std::int64_t> step("step");
  follow(cosine_decay(0.5, step, 20, 0.1), step, [](double n) {
    const double half = (1 + std::cos(std::numbers::pi * std::min(n, 20.) / 20)) / 2;
    return 0.5 * (0.9 * half + 0.1);
  });
}

TEST_CASE_FIXTURE(own_graph, "warm-up works with a number and with a schedule") {
  placeholder<std::int64_t> step("step");
  follow(linear_warmup(0.5, step, 10), step,
         [](double n) { return 0.5 * std::min((n + 1) / 10, 1.); });
  follow(linear_warmup(exponential_decay(0.5, step, 10, 0.9), step, 10), step,
         [](double n) { return 0.5 * std::pow(0.9, n / 10) * std::min((n + 1) / 10, 1.); });
}

TEST_CASE_FIXTURE(own_graph, "an optimizer's rate follows the global step") {
  variable<double> w("w", 0.);
  const auto step = global_step();
  const auto rate = exponential_decay(1, step, 2, 0.5, {.staircase = true});
  const operation train = sgd(rate).minimize(w * 1., step);
  session s;
  s.run(initialize_all());
  for (int i = 0; i < 6; ++i) s.run(train);
  CHECK(s.run(w) == -(1 + 1 + 0.5 + 0.5 + 0.25 + 0.25));
}

TEST_CASE_FIXTURE(own_graph, "a schedule reports invalid arguments") {
  placeholder<std::int64_t> step("step");
  placeholder<float, 2> wide("wide");
  auto says = [](auto f, const char* text) {
    const std::string e = testing::error_of(f);
    CAPTURE(e);
    CHECK(e.starts_with(str("invalid_argument: ", text)));
  };
  says([&] { exponential_decay(1, step, 0, 0.5); },
       "[exponential_decay] expects decay_steps above 0, and got 0");
  says([&] { exponential_decay(1, step, std::numeric_limits<double>::infinity(), 0.5); },
       "[exponential_decay] expects decay_steps above 0, and got inf");
  says([&] { polynomial_decay(1, step, 10, {.power = -1}); },
       "[polynomial_decay] expects a power from 0, and got -1");
  says([&] { cosine_decay(1, step, 10, std::numeric_limits<double>::quiet_NaN()); },
       "[cosine_decay] expects an alpha from 0, and got nan");
  says([&] { cosine_decay(1, wide, 1); },
       "[cosine_decay] expects a scalar of numbers as the step, and got float(2)");
  says([&] { linear_warmup(1, any_tensor(), 1); }, "[linear_warmup] the step is an empty tensor");
  says(
      [&] {
        piecewise_constant(step, {1, 2}, {1, 2});
      },
      "[piecewise_constant] expects a value more than boundaries, and got 2 values and 2");
  says(
      [&] {
        piecewise_constant(step, {2, 2}, {1, 2, 3});
      },
      "[piecewise_constant] expects boundaries that increase, and got 2, 2");
}
