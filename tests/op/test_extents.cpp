// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deft/deft.hpp>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::any;
using testing::maker;
using testing::own_graph;
using testing::type_of;

namespace {

void check_error(auto f, std::string_view text) {
  const std::string e = testing::error_of(f);
  INFO(e);
  CHECK(e.starts_with("invalid_argument: " + std::string(text)));
}

ndarray<float, dyn, 3> counted(std::int64_t rows) {
  any_array a(dtype::float32, {rows, 3});
  for (std::int64_t i = 0; i < a.elements(); ++i)
    a.mutable_data<float>()[i] = static_cast<float>(i);
  return ndarray<float, dyn, 3>(std::move(a));
}

}  // namespace

TEST_CASE_FIXTURE(own_graph, "random tensors have the extents of another or those of a run") {
  placeholder<float, dyn, 3> x("x");
  placeholder<std::int32_t, dyn> labels("labels");
  static_assert(std::is_same_v<decltype(random_normal_like(x)), tensor<float, dyn, 3>>);
  static_assert(std::is_same_v<decltype(random_uniform_like(x * 2)), tensor<float, dyn, 3>>);
  const auto rows = size_of(labels);
  const auto n = random_normal<double>(shape<dyn, 5>, {rows}, 10, 0.5);
  const auto u = random_uniform(shape<dyn, dyn>, {rows, size_of(x, axis<0>)}, 2, 3);
  const auto t = truncated_normal(shape<dyn>, {rows * 1000}, 2);
  static_assert(std::is_same_v<decltype(n), const tensor<double, dyn, 5>>);
  static_assert(std::is_same_v<decltype(u), const tensor<float, dyn, dyn>>);
  session s;
  for (std::int64_t k : {4, 0, 1, 7}) {
    CAPTURE(k);
    const ndarray<std::int32_t, dyn> classes(any_array(dtype::int32, {k}));
    const auto [nl, ul, tl, nv, uv, tv] =
        s.run(random_normal_like(x, 5, 0.1), random_uniform_like(x, 1, 2),
              truncated_normal_like(x, 3), n, u, t, x = counted(k + 1), labels = classes);
    for (const auto* a : {&nl, &ul, &tl}) CHECK(a->extents() == dims{k + 1, 3});
    CHECK(nv.extents() == dims{k, 5});
    CHECK(uv.extents() == dims{k, k + 1});
    CHECK(tv.extents() == dims{1000 * k});
    for (float v : nl) CHECK(std::abs(v - 5) < 1);
    for (float v : ul) CHECK((v >= 1 && v < 2));
    for (double v : nv) CHECK(std::abs(v - 10) < 5);
    for (float v : uv) CHECK((v >= 2 && v < 3));
    for (float v : tv) CHECK(std::abs(v) <= 4);
  }
}

TEST_CASE_FIXTURE(own_graph, "sizes of a run draw the numbers that fixed extents draw") {
  placeholder<std::int64_t> n("n");
  const random_options o{.seed = 3};
  session s;
  const auto [a, b, c, d] =
      s.run(random_normal(shape<4, 3>, 0, 1, o), random_normal(shape<dyn, 3>, {n}, 0, 1, o),
            random_normal(shape<dyn, 3>, {n}, 0, 1, o),
            random_normal_like(zeros(shape<dyn, 3>, {n}), 0, 1, o), n = 4);
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 3; ++j) {
      CHECK(a(i, j) == b(i, j));
      CHECK(a(i, j) == c(i, j));
      CHECK(a(i, j) == d(i, j));
    }
  const auto x = random_normal(shape<dyn>, {n}), y = random_normal(shape<dyn>, {n});
  CHECK_FALSE(same(x, y));  // each call draws its own
  const auto [first, second] = s.run(x, y, n = 3);
  CHECK(first(0) != second(0));
  CHECK(s.run(x, n = 3)(0) != first(0));
}

TEST_CASE_FIXTURE(own_graph, "a part begins and ends where a run says") {
  placeholder<float, dyn, 3> x("x");
  placeholder<std::int32_t> i("i");
  placeholder<std::int64_t> n("n");
  placeholder<std::int64_t, 2> corner("corner");
  static_assert(std::is_same_v<decltype(slice(x, {i, 0}, shape<2, 3>)), tensor<float, 2, 3>>);
  static_assert(std::is_same_v<decltype(slice(x, {i, 1}, shape<dyn, 2>)), tensor<float, dyn, 2>>);
  static_assert(
      std::is_same_v<decltype(slice(x, {0, i}, shape<dyn, 1>, {n})), tensor<float, dyn, 1>>);
  static_assert(std::is_same_v<decltype(slice(x, {0, i}, {n, 1})), tensor<float, dyn, dyn>>);
  CHECK(type_of(slice(any_tensor(x), {i, 0}, shape<2, 3>)) == "float(2,3)");
  CHECK(type_of(slice(any_tensor(x), {0, 1}, shape<dyn, dyn>, {n, 2})) == "float(?,2)");
  session s;
  const auto v = counted(5);
  for (std::int32_t k : {0, 3, 1}) {
    CAPTURE(k);
    const auto [fixed, tail, vector] = s.run(
        slice(x, {i, 1}, shape<2, 2>), slice(x, {i, 2}, shape<dyn, 1>),
        slice(x, corner, shape<1, 1>), x = v, i = k, corner = ndarray<std::int64_t, 2>{k + 1, 2});
    CHECK(fixed(0, 0) == v(k, 1));
    CHECK(fixed(1, 1) == v(k + 1, 2));
    CHECK(tail.extents() == dims{5 - k, 1});
    CHECK(tail(4 - k, 0) == v(4, 2));
    CHECK(vector(0, 0) == v(k + 1, 2));
    const auto [some, both] = s.run(slice(x, {1, i}, shape<dyn, dyn>, {n, 0}),
                                    slice(x, {i, 0}, {dyn, n}), x = v, i = k, n = 2);
    CHECK(some.extents() == dims{2, 0});
    CHECK(both.extents() == dims{5 - k, 2});
    CHECK(both(0, 1) == v(k, 1));
  }
  // Without a tensor in either list it is the usual slice.
  CHECK(
      same(any_tensor(slice(x, {1, 0}, shape<2, 3>)), any_tensor(slice(x, at<1, 0>, shape<2, 3>))));
}

TEST_CASE_FIXTURE(own_graph, "a part's gradient is zeros around its own, twice as well") {
  placeholder<float, dyn, 3> x("x");
  placeholder<std::int32_t> i("i");
  const tensor<float, 2, 2> part = slice(x, {i, 1}, shape<2, 2>);
  const auto [dx] = gradients(sum(part * part * part), x);
  const auto [ddx] = gradients(sum(square(dx)), x);
  session s;
  const auto v = counted(4);
  for (std::int32_t k : {0, 2, 1}) {
    const auto [d, dd] = s.run(dx, ddx, x = v, i = k);
    REQUIRE(d.extents() == dims{4, 3});
    for (std::int64_t r = 0; r < 4; ++r)
      for (std::int64_t c = 0; c < 3; ++c) {
        const bool inside = r >= k && r < k + 2 && c >= 1;
        const float e = v(r, c);
        CHECK(d(r, c) == (inside ? 3 * e * e : 0));
        CHECK(dd(r, c) == (inside ? 36 * e * e * e : 0));
      }
  }
}

TEST_CASE_FIXTURE(own_graph, "errors of what a run computes name the axis") {
  placeholder<float, dyn, 3> x("x");
  placeholder<std::int32_t> i("i");
  session s;
  const auto v = counted(4);
  check_error(
      [&] {
        s.run(slice(x, {i, 0}, shape<2, 3>), x = v, i = 3);
      },
      "[slice] (4,3) has no part of size (2,3) at (3,0): along axis 0 it has indices from 0 "
      "to below 4");
  check_error(
      [&] {
        s.run(slice(x, {0, i}, shape<dyn, dyn>), x = v, i = 4);
      },
      "[slice] (4,3) has no part of size (?,?) at (0,4): along axis 1");
  check_error(
      [&] {
        s.run(slice(x, {i, 0}, shape<2, 3>), x = v, i = -1);
      },
      "[slice] the first index of axis 0 is -1, and must not be negative");
  check_error(
      [&] {
        s.run(slice(x, {0, 0}, shape<dyn, 3>, {i}), x = v, i = 5);
      },
      "[slice] (4,3) has no part of size (5,3) at (0,0): along axis 0");
  check_error([&] { s.run(random_normal(shape<dyn, 2>, {i}), i = -7); },
              "[random_normal] the extent of axis 0 is -7, and must not be negative");
  check_error(
      [&] {
        s.run(random_uniform(shape<dyn, dyn>, {i, i}), i = 2'000'000'000);
      },
      "[random_uniform] the extent of axis 1 is 2000000000, which makes more than");
  check_error([&] { slice(x, {i}, {2}); },
              "[slice] expects a first index and a size of each of 2 axes, and got 1 and 1");
  check_error([&] { slice(x, any(dtype::int64, {dyn}), shape<2, 3>); },
              "a shape or an index that a run computes is made of integer scalars, or is an");
  check_error([&] { zeros(shape<dyn>, {any(dtype::float32, {})}); },
              "a shape or an index that a run computes is made of integer scalars");
  check_error([&] { random_normal_like(any(dtype::int32, {dyn})); },
              "[random_normal] is not defined for int32");
}

TEST_CASE_FIXTURE(own_graph, "the extents of a tensor that has them need no run") {
  placeholder<float, 4, 3> x("x");
  CHECK(type_of(any_tensor(zeros(shape<dyn, 2>, {size_of(x, axis<0>)}))) == "float(4,2)");
  CHECK(type_of(any_tensor(arange(size_of(x)))) == "int64(12)");
}

TEST_CASE_FIXTURE(own_graph, "extents pass from device to device, and from task to task") {
  placeholder<float, dyn, 3> x("x");
  auto build = [&](const char* sizes, const char* values) {
    const auto n = on(device(sizes), [&] { return size_of(x * 1, axis<0>); });
    return on(device(values), [&] {
      return std::tuple{tensor<float, dyn, 2>(ones(shape<dyn, 2>, {n}) * 3),
                        tensor<float, dyn, 3>(slice(x, {n - 2, 0}, shape<dyn, 3>))};
    });
  };
  auto check = [&](auto& s, const char* sizes, const char* values) {
    CAPTURE(sizes);
    CAPTURE(values);
    const auto [o, p] = build(sizes, values);
    for (std::int64_t k : {3, 5, 2}) {
      const auto v = counted(k);
      const auto [ones, part] = s.run(o, p, x = v);
      REQUIRE(ones.extents() == dims{k, 2});
      REQUIRE(part.extents() == dims{2, 3});
      for (float e : ones) CHECK(e == 3);
      CHECK(part(1, 2) == v(k - 1, 2));
    }
  };
  session here({.cpu_devices = 2});
  check(here, "/cpu:0", "/cpu:1");
  local_cluster c{{"worker", 2}};
  session there(c.target("worker", 0));
  check(there, "/job:worker/task:0", "/job:worker/task:1");
  check(there, "/job:worker/task:1", "/job:worker/task:0");
}

TEST_CASE_FIXTURE(own_graph, "a variational autoencoder trains on batches of any size") {
  placeholder<float, dyn, 3> x("x");
  variable<float, 3, 4> w("w", random_normal(0, 0.3));
  variable<float, 2, 3> u("u", random_normal(0, 0.3));
  const auto h = matmul(x * 0.1, w);
  const tensor<float, dyn, 2> mean_of = slice(h, at<0, 0>, shape<dyn, 2>);
  const tensor<float, dyn, 2> log_variance = slice(h, at<0, 2>, shape<dyn, 2>);
  const auto z = mean_of + exp(log_variance * 0.5) * random_normal_like(mean_of);
  const auto loss = mean(sigmoid_cross_entropy(matmul(z, u), sigmoid(x * 0.1))) -
                    mean(log_variance + 1 - square(mean_of) - exp(log_variance)) * 0.01;
  const auto train = sgd(0.1f).minimize(loss);
  session s;
  s.run(initialize_all());
  float first = 0, last = 0;
  for (int k = 0; k < 60; ++k) {
    const float l = s.run(loss, train, x = counted(3 + k % 4));
    if (k == 0) first = l;
    last = l;
    REQUIRE(std::isfinite(l));
  }
  CHECK(last < first);
}
