// SPDX-License-Identifier: Apache-2.0
// Sums of many addends: within 8 log2(n) units in the last place of the exact sum, whatever adds
// them, and with the same bits on any number of threads.
#include <cmath>
#include <deft/deft.hpp>
#include <functional>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

struct example {
  std::string name;
  double addends;
  std::vector<dims> operands;
  std::function<any_tensor(const std::vector<any_tensor>&)> result;
};

/// Elements in [0, 1), so that nothing cancels out; all equal if `seed` is 0.
template <class T>
any_array elements(const dims& shape, std::uint64_t seed) {
  philox_stream random(seed);
  any_array a(dtype_of<T>, shape);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    a.mutable_data<T>()[i] = static_cast<T>(seed ? random.uniform(0.f, 1.f) : 0.7f);
  return a;
}

/// n indices or classes, all 0.
any_tensor first_of_each(std::int64_t n) {
  any_array a(dtype::int32, {n});
  std::fill_n(a.mutable_data<std::int32_t>(), n, 0);
  return constant(a);
}

template <class T>
any_array run(const example& e, std::uint64_t seed, const session_options& options, bool exact) {
  graph own;
  const auto in = as_default(own);
  auto there = on(device(exact ? "/cpu:0" : ""));
  std::vector<any_tensor> operands;
  std::vector<feed_value> feeds;
  for (const dims& d : e.operands) {
    operands.push_back(make_placeholder("x", dtype_of<T>, d));
    feeds.push_back(deft::detail::array_feed(operands.back().handle(),
                                             elements<T>(d, seed ? seed + feeds.size() : 0)));
  }
  session s(options);
  return s.run(e.result(operands), feeds);
}

void check(const example& e) {
  for (const std::uint64_t seed : {0, 1}) {
    CAPTURE(e.name);
    CAPTURE(seed);
    const any_array found = run<float>(e, seed, {.intra_op_threads = 1}, false),
                    exact = run<double>(e, seed, {.fuse = false}, true);
    double worst = 0;
    for (std::int64_t i = 0; i < found.elements(); ++i) {
      const double x = exact.data<double>()[i];
      worst = std::max(worst, std::abs(static_cast<double>(found.data<float>()[i]) - x) / x);
    }
    CHECK(worst <= 8 * std::numeric_limits<float>::epsilon() * std::log2(std::max(2., e.addends)));
    CHECK(run<float>(e, seed, {.intra_op_threads = 3}, false) == found);
  }
}

example product(std::int64_t m, std::int64_t k, std::int64_t n, bool transpose_a = false,
                bool transpose_b = false) {
  return {str("(", m, ",", k, ") x (", k, ",", n, ")", transpose_a ? " a transposed" : "",
              transpose_b ? " b transposed" : ""),
          static_cast<double>(k),
          {transpose_a ? dims{k, m} : dims{m, k}, transpose_b ? dims{n, k} : dims{k, n}},
          [=](const auto& x) { return matmul(x[0], x[1], transpose_a, transpose_b); }};
}

}  // namespace

TEST_CASE("products of long rows with few columns are accurate") {
  for (const std::int64_t k :
       {2, 63, 64, 65, 127, 128, 129, 255, 257, 511, 512, 513, 4097, 100'003})
    for (const std::int64_t n : {1, 3, 8, 10, 16}) check(product(4, k, n));
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      check(product(10, 300'001, 10, a, b));
      check(product(1, 3'000'001, 1, a, b));
      check(product(1, 100'003, 40, a, b));
      check(product(40, 100'003, 1, a, b));
    }
  check(product(30, 1000, 40));
}

TEST_CASE("softmax and its cross entropy are accurate for many classes") {
  for (const std::int64_t n : {2, 63, 65, 255, 257, 511, 513, 1023, 1025, 50'001, 1'000'003}) {
    check({str("softmax of ", n), static_cast<double>(n), {{2, n}}, [](const auto& x) {
             return softmax(x[0]);
           }});
    check({str("cross entropy of ", n, " probabilities"),
           static_cast<double>(n),
           {{2, n}, {2, n}},
           [](const auto& x) { return softmax_cross_entropy(x[0], x[1]); }});
    check({str("cross entropy of ", n, " classes"),
           static_cast<double>(n),
           {{2, n}},
           [](const auto& x) { return softmax_cross_entropy(x[0], first_of_each(2)); }});
  }
}

TEST_CASE("averages of large windows and their gradients are accurate") {
  for (const dims& window :
       {dims{8, 8}, dims{13, 5}, dims{64, 64}, dims{500, 600}, dims{1000, 1000}})
    for (const std::int64_t channels : {1, 17})
      if (window.elements() * channels < 2'000'000)
        check({str("average over ", window, " of ", channels),
               static_cast<double>(window.elements()),
               {{1, window[0], window[1], channels}},
               [=](const auto& x) { return avg_pool(x[0], {.window = window}); }});
  // A window for each place, so that each element is part of many of them.
  for (const std::int64_t n : {8, 9, 40})
    check({str("gradient of averages over ", n, "x", n),
           static_cast<double>(n * n),
           {{1, 2 * n, 2 * n, 3}},
           [=](const auto& x) {
             const any_tensor y =
                 avg_pool(x[0], {.window = {n, n}, .stride = {1, 1}, .padding = padding::same});
             return gradients(sum(y * y), {x[0]})[0];
           }});
}

TEST_CASE("convolutions and their gradients are accurate") {
  struct size {
    dims x, filter;
  };
  for (const auto& [x, filter] :
       {size{{1, 5, 5, 600}, {3, 3, 600, 2}}, size{{1, 5, 5, 600}, {3, 3, 600, 20}},
        size{{64, 112, 112, 1}, {1, 1, 1, 1}}, size{{16, 112, 112, 1}, {3, 3, 1, 5}},
        size{{40, 56, 56, 2}, {3, 3, 2, 40}}, size{{2, 17, 300, 3}, {2, 2, 3, 7}}}) {
    const dims y{x[0], x[1] - filter[0] + 1, x[2] - filter[1] + 1, filter[3]};
    check({str("convolution of ", x, " by ", filter),
           static_cast<double>(filter[0] * filter[1] * filter[2]),
           {x, filter},
           [](const auto& of) { return conv2d(of[0], of[1]); }});
    for (const std::size_t by : {0, 1})
      check({str("gradient of ", x, " by ", filter, ", by operand ", by),
             static_cast<double>(by ? y[0] * y[1] * y[2] : filter[0] * filter[1] * filter[3]),
             {x, filter, y},
             [=](const auto& of) {
               return gradients(sum(conv2d(of[0], of[1]) * of[2]), {of[by]})[0];
             }});
  }
}

TEST_CASE("sums over axes with others between them, and of rows with one index, are accurate") {
  for (const dims& shape :
       {dims{63, 3, 2}, dims{65, 3, 40}, dims{100'003, 3, 2}, dims{300, 2, 700}}) {
    const double n = static_cast<double>(shape[0] * shape[2]);
    check({str("sum of ", shape, " over axes 0 and 2"), n, {shape}, [](const auto& x) {
             return sum(x[0], axes{0, 2});
           }});
    check({str("mean of ", shape, " over axes 0 and 2 of four"),
           n,
           {{shape[0], shape[1], shape[2], 5}},
           [](const auto& x) {
             return mean(x[0], axes{0, 2});
           }});
    check({str("batch statistics of ", shape), n, {shape}, [](const auto& x) {
             return mean(square(x[0]), axes{0, 1}, keepdims);
           }});
  }
  check({"gradient of a row that is gathered often",
         100'003,
         {{4, 3}, {100'003, 3}},
         [](const auto& x) {
           return gradients(sum(gather(x[0], first_of_each(100'003)) * x[1]), {x[0]})[0] + 1;
         }});
}

TEST_CASE("few long rows and many of them are folded accurately") {
  for (const dims& shape : {dims{3, 300'001}, dims{255, 16'385}, dims{256, 16'385}})
    check({str("sum of the rows of ", shape),
           static_cast<double>(shape[1]),
           {shape},
           [](const auto& x) { return sum(x[0], axes{1}); }});
}

TEST_CASE("a class that is impossible, and has a label of 0, adds nothing to the cross entropy") {
  graph own;
  const auto in = as_default(own);
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (const std::int64_t n : {3, 40, 3000}) {
    any_array x(dtype::float32, {2, n}), labels(dtype::float32, {2, n});
    std::fill_n(x.mutable_data<float>(), 2 * n, 0.f);
    std::fill_n(labels.mutable_data<float>(), 2 * n, 0.f);
    x.mutable_data<float>()[0] = x.mutable_data<float>()[n] = -inf;
    labels.mutable_data<float>()[1] = labels.mutable_data<float>()[n] = 1;
    session s;
    const any_tensor logits = make_placeholder("x", dtype::float32, {2, n}),
                     loss = softmax_cross_entropy(logits, constant(labels)),
                     slope = gradients(loss, {logits})[0];
    const auto feed = [&] { return deft::detail::array_feed(logits.handle(), x); };
    const any_array alone = s.run(loss, feed());
    const auto [joined, d] = s.run(loss, slope, feed());
    CHECK(alone.data<float>()[0] == doctest::Approx(std::log(static_cast<double>(n - 1))));
    CHECK(alone.data<float>()[1] == inf);
    CHECK(any_array(joined) == alone);
    CHECK(any_array(d).data<float>()[0] == 0);
  }
}
