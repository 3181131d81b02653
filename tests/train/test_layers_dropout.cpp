// SPDX-License-Identifier: Apache-2.0
#include <deft/train/layers_dropout.hpp>

#include "differences.hpp"

using namespace deft;
using namespace testing;
using doctest::Approx;

TEST_CASE_FIXTURE(own_graph, "dropout keeps some elements, scaled, and drops the others") {
  placeholder<float, dyn, 100> x("x");
  placeholder<bool> training("training");
  const tensor<float, dyn, 100> y = dropout(x, 0.25);
  const any_tensor flagged = dropout(any_tensor(x), 0.25, {.training = training});
  const any_tensor known = dropout(any(dtype::float64, {20, 50}), 0.5);
  CHECK(type_of(known) == "double(20,50)");
  session s;
  ndarray<float, dyn, 100> in(100);
  for (std::int64_t i = 0; i < 10'000; ++i) in(i / 100, i % 100) = 3;
  const auto flag = [&](bool v) { return feed(any_tensor(training), any_array::scalar(v)); };
  any_array first = s.run(any_tensor(y), x = in);
  const any_array second = s.run(any_tensor(y), x = in);
  CHECK(!identical(first, second));
  for (const any_array& v : {first, any_array(s.run(flagged, x = in, flag(true)))}) {
    int kept = 0;
    for (int i = 0; i < 10'000; ++i) {
      const float e = v.data<float>()[i];
      if (e != 0) CHECK(e == Approx(4));
      kept += e != 0;
    }
    CHECK(std::abs(kept - 7500) < 250);
  }
  CHECK(identical(any_array(s.run(flagged, x = in, flag(false))), in.array()));
  CHECK(same(dropout(any_tensor(x), 0.25, {.training = false}), any_tensor(x)));
  CHECK(same(dropout(any_tensor(x), 0), any_tensor(x)));
}

TEST_CASE_FIXTURE(own_graph, "the gradient of dropout goes to what was kept") {
  placeholder<float, dyn> x("x");
  const tensor<float, dyn> y = dropout(x, 0.5, {.seed = 7});
  const auto [dx] = gradients(sum(y), x);
  session s;
  const auto [v, d] = s.run(y, dx, x = std::vector<float>(200, 1.f));
  for (int i = 0; i < 200; ++i) CHECK(d(i) == v(i));
}

TEST_CASE_FIXTURE(own_graph, "errors of dropout") {
  check_error(
      [] { dropout(any(dtype::float32, {3}), 1); },
      "invalid_argument: [dropout] expects a floating tensor and a rate from 0 to less than "
      "1, and got float(3) and 1");
  check_error([] { dropout(any(dtype::int32, {3}), 0.5); },
              "invalid_argument: [dropout] expects a floating tensor");
}
