// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deft/deft.hpp>
#include <deft/op/gradients.hpp>

#include "modeling.hpp"

using namespace deft;
using testing::any;
using testing::own_graph;
using testing::type_of;

TEST_CASE_FIXTURE(own_graph, "softmax and its logarithm along any axis") {
  placeholder<double, dyn, 3, 4> x("x");
  static_assert(std::is_same_v<decltype(softmax(x, axis<0>)), tensor<double, dyn, 3, 4>>);
  static_assert(std::is_same_v<decltype(log_softmax(x)), tensor<double, dyn, 3, 4>>);
  static_assert(std::is_same_v<decltype(log_softmax(x, axis<-2>)), tensor<double, dyn, 3, 4>>);
  CHECK(same(any_tensor(softmax(x, axis<2>)), any_tensor(softmax(x))));
  CHECK(same(any_tensor(softmax(x, axis<1>)), softmax(x, axes{-2})));
  CHECK(same(any_tensor(log_softmax(x)), log_softmax(x, axes{2})));
  CHECK(same(softmax(x, {0}), softmax(x, axes{0})));  // an axis, not a source location
  any_array values(dtype::float64, {2, 3, 4});
  for (std::int64_t i = 0; i < 24; ++i)
    values.mutable_data<double>()[i] = std::sin(static_cast<double>(i)) * 3;
  const ndarray<double, dyn, 3, 4> v(std::move(values));
  session s;
  auto check = [&](int axis, const ndarray<double, dyn, 3, 4>& y,
                   const ndarray<double, dyn, 3, 4>& logarithm) {
    CAPTURE(axis);
    const std::int64_t extents[] = {2, 3, 4};
    for (std::int64_t i = 0; i < 2; ++i)
      for (std::int64_t j = 0; j < 3; ++j)
        for (std::int64_t k = 0; k < 4; ++k) {
          double sum = 0;
          for (std::int64_t a = 0; a < extents[axis]; ++a)
            sum += std::exp(v(axis == 0 ? a : i, axis == 1 ? a : j, axis == 2 ? a : k));
          CHECK(y(i, j, k) == doctest::Approx(std::exp(v(i, j, k)) / sum).epsilon(1e-14));
          CHECK(logarithm(i, j, k) == doctest::Approx(v(i, j, k) - std::log(sum)).epsilon(1e-14));
        }
  };
  const auto [a, la] = s.run(softmax(x, axis<0>), log_softmax(x, axis<0>), x = v);
  check(0, a, la);
  const auto [b, lb] = s.run(softmax(x, axis<1>), log_softmax(x, axis<1>), x = v);
  check(1, b, lb);
  const auto [c, lc] = s.run(softmax(x, axis<-1>), log_softmax(x), x = v);
  check(2, c, lc);
}

TEST_CASE_FIXTURE(own_graph, "the logarithm of softmax does not overflow") {
  placeholder<float, 4, 2> x("x");
  session s;
  const ndarray<float, 4, 2> y =
      s.run(log_softmax(x), x = {{1e4, 0}, {-1e30f, 1e30f}, {0, -INFINITY}, {NAN, 0}});
  CHECK(y(0, 0) == 0);
  CHECK(y(0, 1) == -1e4f);
  CHECK(y(1, 0) == -2e30f);
  CHECK(y(1, 1) == 0);
  CHECK(y(2, 0) == 0);
  CHECK(y(2, 1) == -INFINITY);
  CHECK(y(3, 0) != y(3, 0));
  CHECK(y(3, 1) != y(3, 1));
  CHECK(s.run(log_softmax(zeros<float>(shape<3, 0>))).extents() == dims{3, 0});
}

TEST_CASE_FIXTURE(own_graph, "an axis without elements has a logarithm of softmax in each run") {
  placeholder<float, dyn, dyn> x("x");
  placeholder<float, 0, dyn> empty("empty");
  session s;
  auto check = [&](const auto& in, auto a, dims extents) {
    CAPTURE(extents);
    const any_tensor y = log_softmax(in, a), dx = gradients(sum(exp(y)), {in})[0];
    const std::vector<any_array> got =
        s.run(std::vector<any_tensor>{y, dx}, in = any_array(dtype::float32, extents));
    CHECK(got[0].shape() == extents);
    CHECK(got[1].shape() == extents);
  };
  check(empty, axis<0>, {0, 3});
  for (const dims& extents : {dims{0, 3}, dims{3, 0}, dims{0, 0}, dims{2, 3}}) {
    check(x, axis<0>, extents);
    check(x, axis<1>, extents);
  }
  const ndarray<float, dyn, dyn> y =
      s.run(log_softmax(x), x = ndarray<float, dyn, dyn>{{-INFINITY, 0}, {-1e38f, -1e38f}});
  CHECK(y(0, 0) == -INFINITY);
  CHECK(y(0, 1) == 0);
  CHECK(y(1, 0) == doctest::Approx(-std::log(2.)));
}

TEST_CASE_FIXTURE(own_graph, "the index of the largest and the smallest of all elements") {
  placeholder<float, dyn, 3> x("x");
  static_assert(std::is_same_v<decltype(argmax(x)), tensor<std::int64_t>>);
  static_assert(std::is_same_v<decltype(argmin(x * 2)), tensor<std::int64_t>>);
  CHECK(type_of(argmax(any(dtype::int32, {dyn, dyn, 2}))) == "int64()");
  session s;
  const auto [most, least] =
      s.run(argmax(x), argmin(x), x = ndarray<float, dyn, 3>{{1, 5, 2}, {5, 0, -7}, {3, -7, 4}});
  CHECK(most == 1);
  CHECK(least == 5);
  CHECK(s.run(argmax(constant(3.f))) == 0);
  CHECK(s.run(argmin(constant({{1.f, NAN}, {-1.f, 2.f}}))) == 1);
  CHECK(testing::error_of([&] {
          s.run(argmax(x), x = ndarray<float, dyn, 3>(any_array(dtype::float32, {0, 3})));
        }).starts_with("invalid_argument: [argmax] is undefined for zero elements"));
}

TEST_CASE_FIXTURE(own_graph, "errors of softmax along an axis") {
  auto check = [](auto f, std::string_view text) {
    const std::string e = testing::error_of(f);
    INFO(e);
    CHECK(e.starts_with("invalid_argument: " + std::string(text)));
  };
  const any_tensor x = any(dtype::float32, {2, dyn}), i = any(dtype::int32, {2});
  check([&] { softmax(x, axes{2}); },
        "[softmax] expects one axis of a tensor of rank 2, and got (2)");
  check(
      [&] {
        log_softmax(x, axes{0, 1});
      },
      "[log_softmax] expects one axis of a tensor of rank 2, and got (0,1)");
  check([&] { softmax(i, axes{0}); }, "[softmax] is not defined for int32");
  check([&] { log_softmax(i); }, "[log_softmax] is not defined for int32");
}
