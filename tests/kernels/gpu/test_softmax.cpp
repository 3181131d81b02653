// SPDX-License-Identifier: Apache-2.0
#include <deft/op/softmax.hpp>
#include <deft/op/softmax_cross_entropy.hpp>

#include "../arrays.hpp"
#include "on_gpu.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

// Exponentials are off by up to two units in the last place on the processor; a row's sum, and its
// scaling where a larger element follows, add some.
constexpr double ulps = 16;

const std::vector<dims> shapes = {{1},       {10},       {1, 1},    {3, 7},    {64, 10},
                                  {5, 1000}, {2, 3, 33}, {3, 2049}, {300, 31}, {2, 40000},
                                  {0, 5},    {4, 0},     {0, 0},    {2, 0, 3}};

dims rows_of(const dims& x) { return dims(std::span(x.begin(), x.end() - 1)); }

template <class Index>
any_array classes(const dims& x, std::int64_t step = 7) {
  any_array labels(dtype_of<Index>, rows_of(x));
  for (std::int64_t r = 0; r < labels.elements(); ++r)
    labels.mutable_data<Index>()[r] =
        static_cast<Index>(r * step % std::max<std::int64_t>(1, x.back()));
  return labels;
}
template <class T>
any_array probabilities(const dims& x) {
  return run_op(op::softmax(), {moderate<T>(x, 2)});
}
/// Rows that ascend, descend, and make exponentials overflow.
template <class T>
any_array hard_rows(std::int64_t n) {
  const T inf = std::numeric_limits<T>::infinity(), most = std::numeric_limits<T>::max();
  std::vector<std::vector<T>> special = {{},
                                         {-inf},
                                         {inf},
                                         {std::numeric_limits<T>::quiet_NaN()},
                                         {-inf, -inf},
                                         {inf, inf},
                                         {inf, -inf},
                                         {most},
                                         {-most},
                                         {T(1e30), T(1e30)},
                                         {-inf, T(1000)}};
  any_array x(dtype_of<T>, {static_cast<std::int64_t>(special.size()) * 4 + 2, n});
  T* to = x.template mutable_data<T>();
  for (const auto& s : special)
    for (std::size_t first : {std::size_t{0}, std::size_t{1}, static_cast<std::size_t>(n) / 2,
                              static_cast<std::size_t>(n) - s.size()}) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(i % 2 ? -i : i) / 8;
      for (std::size_t i = 0; i < s.size(); ++i) to[first + i] = s[i];
      to += n;
    }
  for (std::int64_t i = 0; i < n; ++i) to[i] = -inf, to[n + i] = static_cast<T>(n - i);
  return x;
}

/// The node's outputs on the GPU, after a check that they are close to the CPU's.
template <class Op>
std::vector<any_array> checked(const Op& o, const std::vector<any_array>& in, double units = ulps,
                               double least = 0, const gpu_run& how = {}) {
  const auto expected = run_all(record_of<Op>, encode(o), in);
  auto got = run_on_gpu(record_of<Op>, encode(o), in, how);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("output ", i, " of ", to_string(in[0].shape()));
    CHECK(difference(got[i], expected[i], units, least) == "");
  }
  return got;
}
/// The loss, alone and with its gradient, which have the same bits.
template <class T>
void check_loss(const any_array& x, const any_array& labels, const gpu_run& how = {}) {
  const any_array dz = moderate<T>(rows_of(x.shape()), 3), one = moderate<T>({}, 4);
  const auto alone = checked(op::softmax_cross_entropy(), {x, labels}, ulps, 16, how);
  for (const any_array& scale : {dz, one}) {
    const auto both = checked(op::softmax_cross_entropy_grad(), {x, labels, scale}, ulps, 16, how);
    CHECK(identical(both[1], alone[0]));
    CHECK(difference(both[0],
                     run_all(record_of<op::softmax_cross_entropy_grad>, {}, {x, labels, scale})[0],
                     ulps, 1) == "");
  }
}

}  // namespace

TEST_CASE_TEMPLATE("softmax on a GPU is close to the CPU's", T, float, double) {
  for (const dims& shape : shapes)
    for (std::size_t shift : {0, 1}) {
      const gpu_run how{.shift = shift};
      const any_array y = checked(op::softmax(), {moderate<T>(shape)}, ulps, 0, how)[0];
      CHECK(identical(y, run_op_on_gpu(op::softmax(), {moderate<T>(shape)})));
    }
}

TEST_CASE_TEMPLATE("infinities, NaN and large numbers give the CPU's results", T, float, double) {
  for (std::int64_t n : {5, 100, 3000}) {
    const any_array x = hard_rows<T>(n);
    checked(op::softmax(), {x}, ulps, std::numeric_limits<T>::min() * 1e6);
    for (const any_array& labels : {classes<std::int32_t>(x.shape()), probabilities<T>(x.shape())})
      checked(op::softmax_cross_entropy(), {x, labels}, ulps, 16);
  }
}

TEST_CASE_TEMPLATE("cross entropy with classes on a GPU is close to the CPU's", T, float, double) {
  for (const dims& shape : shapes) {
    if (shape.back() == 0 && rows_of(shape).elements() != 0) continue;  // no label is valid
    check_loss<T>(moderate<T>(shape), classes<std::int32_t>(shape));
    check_loss<T>(moderate<T>(shape), classes<std::int64_t>(shape), {.shift = 1});
  }
}

TEST_CASE_TEMPLATE("cross entropy with probabilities on a GPU is close to the CPU's", T, float,
                   double) {
  for (const dims& shape : shapes)
    for (std::size_t shift : {0, 1})
      check_loss<T>(moderate<T>(shape), probabilities<T>(shape), {.shift = shift});
}

TEST_CASE("an offset that all logits share does not change the loss on a GPU") {
  const any_array labels = array_of<float>({1, 4}, {.1f, .2f, .3f, .4f});
  for (float offset : {0.f, 1e3f, 1e5f, 1e6f, 1e7f}) {
    CAPTURE(offset);
    const any_array x = array_of<float>({1, 4}, {offset, offset + 1, offset + 2, offset + 4});
    CHECK(close(run_op_on_gpu(op::softmax_cross_entropy(), {x, labels}).data<float>()[0],
                1.7851825f, 4));
  }
}

TEST_CASE("labels that do not sum to 1 weigh their row on a GPU") {
  const any_array x = array_of<float>({3, 4}, {0, 1, 2, 4, 0, 1, 2, 4, 0, 1, 2, 4});
  const any_array labels = array_of<float>({3, 4}, {0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0});
  check_loss<float>(x, labels);
  const any_array one = array_of<float>({3}, {1, 1, 1});
  const auto out = run_on_gpu(record_of<op::softmax_cross_entropy_grad>, {}, {x, labels, one});
  CHECK(out[1].data<float>()[0] == 0);
  for (int i = 0; i < 4; ++i) CHECK(out[0].data<float>()[i] == 0);  // a masked row
}

TEST_CASE("the gradient of large logits is exact on a GPU") {
  const any_array x = array_of<float>({1, 3}, {9000, 9000, -9000}), label = array_of<int>({1}, {0});
  const auto out = run_on_gpu(record_of<op::softmax_cross_entropy_grad>, {},
                              {x, label, array_of<float>({1}, {2})});
  CHECK(identical(out[0], array_of<float>({1, 3}, {-1, 1, 0})));
}

TEST_CASE("a loss that nothing needs may be left out on a GPU") {
  for (const dims& shape : {dims{20, 30}, dims{2, 40000}}) {
    const any_array x = moderate<float>(shape), dz = moderate<float>(rows_of(shape), 3);
    for (const any_array& labels : {classes<std::int64_t>(shape), probabilities<float>(shape)}) {
      CHECK_FALSE(prepared_on_gpu(record_of<op::softmax_cross_entropy>, {}, types_of({x, labels}))
                      .kernel->optional_output(0));
      prepared_on_gpu k(record_of<op::softmax_cross_entropy_grad>, {}, types_of({x, labels, dz}));
      CHECK_FALSE(k.kernel->optional_output(0));
      CHECK(k.kernel->optional_output(1));
      CHECK(identical(k.run({x, labels, dz}, {.left_out = 1u << 1})[0], k.run({x, labels, dz})[0]));
    }
  }
}

TEST_CASE_TEMPLATE("a label out of range fails on a GPU as on the CPU", I, std::int32_t,
                   std::int64_t) {
  for (const dims& shape : {dims{3, 10}, dims{3, 20000}, dims{3, 0}}) {
    const any_array x = moderate<float>(shape), dz = moderate<float>({3}, 3);
    std::vector<std::int64_t> wrong = {-1, shape[1], 1 << 30};
    if (sizeof(I) == 8) wrong.push_back(std::int64_t{1} << 40);
    for (std::int64_t bad : wrong) {
      CAPTURE(bad);
      // If there are no classes, the first label is out of range.
      const any_array labels =
          shape[1] ? array_of<I>({3}, {1, static_cast<I>(bad), 2}) : array_of<I>({3}, {0, 0, 0});
      auto same = [&](const op_def& op, const std::vector<any_array>& in) {
        const std::string expected = error_of([&] { run_all(op, {}, in); });
        const std::string got = error_of([&] { run_on_gpu(op, {}, in); });
        if (shape[1]) {
          CHECK(got == expected);
          CHECK(got == str("out_of_range: [softmax_cross_entropy] the label ", bad,
                           " of row 1 is out of range for ", shape[1], " classes"));
        } else {  // the error does not name the row
          CHECK(got.empty() == expected.empty());
        }
      };
      same(record_of<op::softmax_cross_entropy>, {x, labels});
      same(record_of<op::softmax_cross_entropy_grad>, {x, labels, dz});
    }
  }
}
