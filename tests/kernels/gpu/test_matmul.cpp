// SPDX-License-Identifier: Apache-2.0
#include <deft/op/matmul.hpp>

#include "../arrays.hpp"
#include "on_gpu.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

template <class T>
void check_product(std::int64_t m, std::int64_t k, std::int64_t n) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      INFO(str("(", m, ",", k, ") x (", k, ",", n, ")", ta ? " ta" : "", tb ? " tb" : ""));
      const any_array a = moderate<T>(ta ? dims{k, m} : dims{m, k}, 1),
                      b = moderate<T>(tb ? dims{n, k} : dims{k, n}, 2);
      const op::matmul o{ta, tb};
      const any_array expected = run_op(o, {a, b});
      for (std::size_t shift : {0, 1}) {
        const any_array c = run_op_on_gpu(o, {a, b}, {.shift = shift});
        // k products of up to 4 each, added in another order.
        const double least = static_cast<double>(k);
        CHECK(difference(c, expected, 8, least) == "");
      }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("products on GPUs agree with the processor's in every form and size", T, float,
                   double, std::int32_t, std::int64_t) {
  const std::int64_t sizes[][3] = {
      {1, 1, 1},    {1, 5, 1},   {1, 100, 70}, {70, 100, 1}, {3, 4, 5},     {4, 4, 4},
      {8, 8, 8},    {9, 17, 10}, {5, 3, 13},   {13, 2, 5},   {100, 50, 10}, {17, 3, 16},
      {65, 40, 67}, {0, 3, 4},   {4, 3, 0},    {4, 0, 3},    {1, 0, 1},     {0, 0, 0}};
  for (const auto& s : sizes) check_product<T>(s[0], s[1], s[2]);
}

TEST_CASE_TEMPLATE("batches on GPUs agree with the processor's", T, float, double, std::int32_t,
                   std::int64_t) {
  const std::pair<dims, dims> leading[] = {{{5}, {5}},    {{5}, {}},          {{}, {5}},
                                           {{0}, {0}},    {{2, 3}, {2, 3}},   {{2, 1}, {3}},
                                           {{3}, {2, 1}}, {{2, 1, 2}, {3, 1}}};
  const std::int64_t sizes[][3] = {{1, 5, 1}, {3, 4, 5}, {9, 17, 10}, {4, 0, 3}, {0, 3, 4}};
  for (const auto& [of_a, of_b] : leading)
    for (const auto& [m, k, n] : sizes)
      for (bool ta : {false, true})
        for (bool tb : {false, true}) {
          dims a_shape = of_a, b_shape = of_b;
          for (auto e : ta ? dims{k, m} : dims{m, k}) a_shape.push_back(e);
          for (auto e : tb ? dims{n, k} : dims{k, n}) b_shape.push_back(e);
          INFO(str(a_shape, " x ", b_shape, ta ? " ta" : "", tb ? " tb" : ""));
          const any_array a = moderate<T>(a_shape, 1), b = moderate<T>(b_shape, 2);
          const op::matmul o{ta, tb};
          const any_array expected = run_op(o, {a, b});
          for (std::size_t shift : {0, 1})
            CHECK(difference(run_op_on_gpu(o, {a, b}, {.shift = shift}), expected, 8,
                             static_cast<double>(k)) == "");
        }
}

TEST_CASE_TEMPLATE("integer products on GPUs wrap", T, std::int32_t, std::int64_t) {
  const any_array a = filled<T>({7, 20}, values<T>(140, 1)),
                  b = filled<T>({20, 6}, values<T>(120, 2));
  CHECK(identical(run_op_on_gpu(op::matmul(), {a, b}), run_op(op::matmul(), {a, b})));
}

TEST_CASE_TEMPLATE("values that are not finite stay in their row and column", T, float, double) {
  using limits = std::numeric_limits<T>;
  any_array a = moderate<T>({5, 3}, 1), b = moderate<T>({3, 6}, 2);
  a.mutable_data<T>()[4 * 3 + 1] = limits::quiet_NaN();
  b.mutable_data<T>()[5] = limits::infinity();
  const any_array c = run_op_on_gpu(op::matmul(), {a, b});
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 6; ++j) {
      CAPTURE(i);
      CAPTURE(j);
      const T v = c.data<T>()[i * 6 + j];
      CHECK(std::isnan(v) == (i == 4));
      CHECK(std::isinf(v) == (i != 4 && j == 5));
    }
}

TEST_CASE("GPUs check extents known only at run time") {
  const any_array a = moderate<float>({2, 3}), b = moderate<float>({3, 4}),
                  c = moderate<float>({5, 4});
  prepared_on_gpu k(record_of<op::matmul>, encode(op::matmul()), types_of({a, b}));
  CHECK(error_of([&] {
          k.kernel->prepare(types_of({a, c}), k.node.outputs);
        }) == "invalid_argument: [matmul] inner extents differ: (2,3) x (5,4)");
}
