// SPDX-License-Identifier: Apache-2.0
#include <deft/kernels/team.hpp>
#include <deft/op/softmax.hpp>
#include <deft/op/softmax_cross_entropy.hpp>
#include <optional>

#include "arrays.hpp"
#include "run_kernel.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

// Tolerances here are 8 units or more: exponentials are off by two, a row's sum adds some, and a
// loss is the difference of two larger numbers.

template <class T>
struct rows {
  std::vector<double> softmax, lse;  ///< log of the sum of exponentials

  explicit rows(const any_array& x) {
    const std::int64_t n = x.shape().back(), count = n ? x.elements() / n : 0;
    for (std::int64_t r = 0; r < count; ++r) {
      const T* p = x.data<T>() + r * n;
      double most = *std::max_element(p, p + n), sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(p[i]) - most);
      for (std::int64_t i = 0; i < n; ++i)
        softmax.push_back(std::exp(static_cast<double>(p[i]) - most) / sum);
      lse.push_back(most + std::log(sum));
    }
  }
};

}  // namespace

TEST_CASE_TEMPLATE("softmax agrees with naive loops", T, float, double) {
  for (const dims& shape : {dims{1}, dims{10}, dims{3, 7}, dims{64, 10}, dims{5, 1000},
                            dims{2, 3, 33}, dims{0, 5}, dims{4, 0}}) {
    INFO(to_string(shape));
    any_array x = moderate<T>(shape), y = run_op(op::softmax(), {x});
    rows<T> expected(x);
    for (std::int64_t i = 0; i < x.elements(); ++i)
      CHECK(
          close(y.data<T>()[i], static_cast<T>(expected.softmax[static_cast<std::size_t>(i)]), 8));
  }
}

TEST_CASE("softmax of large numbers does not overflow, and -inf is probability 0") {
  any_array x = array_of<float>({4}, {1e30f, 1e30f, -1e30f, -INFINITY});
  CHECK(identical(run_op(op::softmax(), {x}), array_of<float>({4}, {0.5f, 0.5f, 0, 0})));
}

struct loss_and_gradient {
  any_array loss, gradient;  ///< gradient: dz * (softmax - labels)

  loss_and_gradient(const any_array& x, const any_array& labels, const any_array& dz) {
    const auto out = run_all(record_of<op::softmax_cross_entropy_grad>, {}, {x, labels, dz});
    gradient = out[0], loss = out[1];
    // The loss alone has the same bits.
    CHECK(identical(run_op(op::softmax_cross_entropy(), {x, labels}), loss));
  }
};

TEST_CASE_TEMPLATE("cross entropy with classes and its gradient agree with naive loops", T, float,
                   double) {
  for (const dims& shape :
       {dims{1, 1}, dims{3, 10}, dims{100, 10}, dims{7, 1000}, dims{2, 3, 40}}) {
    INFO(to_string(shape));
    dims label_shape(std::span<const std::int64_t>(shape.begin(), shape.end() - 1));
    const std::int64_t n = shape.back(), count = label_shape.elements();
    any_array x = moderate<T>(shape), dz = moderate<T>(label_shape, 3);
    any_array labels(dtype::int32, label_shape);
    for (std::int64_t r = 0; r < count; ++r)
      labels.mutable_data<std::int32_t>()[r] = static_cast<std::int32_t>(r * 7 % n);
    const loss_and_gradient out(x, labels, dz);
    rows<T> e(x);
    for (std::int64_t r = 0; r < count; ++r) {
      const auto row = static_cast<std::size_t>(r);
      const std::int64_t label = labels.data<std::int32_t>()[r];
      const double scale = static_cast<double>(dz.data<T>()[r]);
      CHECK(close(out.loss.template data<T>()[r],
                  static_cast<T>(e.lse[row] - static_cast<double>(x.data<T>()[r * n + label])), 8,
                  4));
      for (std::int64_t i = 0; i < n; ++i)
        CHECK(close(
            out.gradient.template data<T>()[r * n + i],
            static_cast<T>(scale * (e.softmax[static_cast<std::size_t>(r * n + i)] - (i == label))),
            8, 1));
    }
  }
}

TEST_CASE_TEMPLATE("cross entropy with probabilities and its gradient agree with naive loops", T,
                   float, double) {
  any_array x = moderate<T>({9, 37}, 1), labels = run_op(op::softmax(), {moderate<T>({9, 37}, 2)});
  any_array dz = moderate<T>({9}, 3);
  const loss_and_gradient out(x, labels, dz);
  rows<T> e(x);
  for (std::size_t r = 0; r < 9; ++r) {
    double loss = 0;
    for (std::size_t i = 0; i < 37; ++i) {
      const double l = static_cast<double>(labels.data<T>()[r * 37 + i]);
      loss += l * (e.lse[r] - static_cast<double>(x.data<T>()[r * 37 + i]));
      CHECK(
          close(out.gradient.template data<T>()[r * 37 + i],
                static_cast<T>(static_cast<double>(dz.data<T>()[r]) * (e.softmax[r * 37 + i] - l)),
                8, 1));
    }
    CHECK(close(out.loss.template data<T>()[r], static_cast<T>(loss), 16, 4));
  }
}

TEST_CASE("an offset that all logits share does not change the loss") {
  const any_array labels = array_of<float>({1, 4}, {.1f, .2f, .3f, .4f}),
                  dz = filled<float>({1}, {1});
  for (float offset : {0.f, 1e3f, 1e5f, 1e6f, 1e7f}) {
    CAPTURE(offset);
    const any_array x = array_of<float>({1, 4}, {offset, offset + 1, offset + 2, offset + 4});
    CHECK(close(loss_and_gradient(x, labels, dz).loss.data<float>()[0], 1.7851825f, 4));
  }
}

TEST_CASE("labels that do not sum to 1 weigh their row") {
  const any_array x = array_of<float>({3, 4}, {0, 1, 2, 4, 0, 1, 2, 4, 0, 1, 2, 4});
  const any_array labels = array_of<float>({3, 4}, {0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0});
  const loss_and_gradient out(x, labels, filled<float>({3}, {1}));
  const float* g = out.gradient.data<float>();
  for (int i = 0; i < 4; ++i) {
    CHECK(g[i] == 0);  // a masked row
    CHECK(close(g[4 + i], 2 * g[8 + i], 4));
  }
  CHECK(out.loss.data<float>()[0] == 0);
  // PyTorch's.
  for (int i = 0; i < 4; ++i)
    CHECK(g[4 + i] ==
          doctest::Approx(std::array{.0304, -1.9173, .2249, 1.6619}[static_cast<std::size_t>(i)])
              .epsilon(1e-3));
}

TEST_CASE("the gradient of large logits is exact") {
  any_array x = array_of<float>({1, 3}, {9000, 9000, -9000}), labels = array_of<int>({1}, {0});
  const loss_and_gradient out(x, labels, array_of<float>({1}, {2}));
  CHECK(identical(out.gradient, array_of<float>({1, 3}, {-1, 1, 0})));
}

TEST_CASE("the loss may be left out, and the gradient stays the same") {
  any_array x = moderate<float>({20, 30}), labels = filled<std::int64_t>({20}, {3, 29, 0});
  CHECK_FALSE(prepared(record_of<op::softmax_cross_entropy>, {}, types_of({x, labels}))
                  .kernel->optional_output(0));
  const any_array dz = moderate<float>({20}, 3);
  prepared k(record_of<op::softmax_cross_entropy_grad>, {}, types_of({x, labels, dz}));
  CHECK_FALSE(k.kernel->optional_output(0));
  CHECK(k.kernel->optional_output(1));
  any_array gradient(dtype::float32, {20, 30});
  const void* in[] = {x.raw(), labels.raw(), dz.raw()};
  void* out[] = {gradient.mutable_raw(), nullptr};
  const step_context step;
  k.run(kernel_call{in, out, &step});
  CHECK(identical(gradient, k.run({x, labels, dz})[0]));
}

TEST_CASE("one value of dz stands for as many as there are rows") {
  for (const dims& shape : {dims{20, 10}, dims{20, 100}, dims{20, 0}}) {
    const any_array x = moderate<float>(shape), one = array_of<float>({}, {0.3f});
    const any_array probabilities = run_op(op::softmax(), {moderate<float>(shape, 2)});
    const loss_and_gradient all(x, probabilities, filled<float>({20}, {0.3f}));
    const loss_and_gradient same(x, probabilities, one);
    CHECK(identical(all.loss, same.loss));
    CHECK(identical(all.gradient, same.gradient));
  }
}

TEST_CASE("a label that is not a class is out of range") {
  any_array x = moderate<float>({3, 10});
  for (std::int32_t bad : {-1, 10, 1 << 30})
    CHECK(error_of([&] {
            run_op(op::softmax_cross_entropy(), {x, array_of<std::int32_t>({3}, {1, bad, 2})});
          }) == str("out_of_range: [softmax_cross_entropy] the label ", bad,
                    " of row 1 is out of range for 10 classes"));
}

TEST_CASE("cross entropy has the same bits for any number of threads") {
  any_array x = moderate<float>({3000, 100}), labels = filled<std::int32_t>({3000}, {1, 5, 99});
  std::optional<loss_and_gradient> first;
  for (int threads : {1, 2, 3}) {
    set_intra_op_threads(threads);
    const loss_and_gradient out(x, labels, moderate<float>({3000}));
    if (!first) first = out;
    CHECK(identical(out.loss, first->loss));
    CHECK(identical(out.gradient, first->gradient));
  }
  set_intra_op_threads(0);
}
