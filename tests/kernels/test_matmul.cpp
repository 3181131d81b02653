// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <deft/kernels/team.hpp>
#include <deft/op/matmul.hpp>

#include "arrays.hpp"
#include "run_kernel.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

template <class T>
any_array naive(const any_array& a, const any_array& b, bool ta, bool tb) {
  const std::int64_t m = a.shape()[ta ? 1 : 0], k = a.shape()[ta ? 0 : 1],
                     n = b.shape()[tb ? 0 : 1];
  any_array c(dtype_of<T>, {m, n});
  using Sum = std::conditional_t<std::is_floating_point_v<T>, long double, std::uint64_t>;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      Sum sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += static_cast<Sum>(a.data<T>()[ta ? l * m + i : i * k + l]) *
               static_cast<Sum>(b.data<T>()[tb ? j * k + l : l * n + j]);
      c.mutable_data<T>()[i * n + j] = static_cast<T>(sum);
    }
  return c;
}

template <class T>
void check_product(std::int64_t m, std::int64_t k, std::int64_t n) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      INFO(str("(", m, ",", k, ") x (", k, ",", n, ")", ta ? " ta" : "", tb ? " tb" : ""));
      any_array a = moderate<T>(ta ? dims{k, m} : dims{m, k}, 1),
                b = moderate<T>(tb ? dims{n, k} : dims{k, n}, 2);
      any_array c = run_op(op::matmul{ta, tb}, {a, b});
      // k products are added in order or in Eigen's blocks, with fused multiply-adds.
      CHECK(difference(c, naive<T>(a, b, ta, tb), 8, static_cast<double>(k)) == "");
    }
}

}  // namespace

TEST_CASE_TEMPLATE("products agree with naive loops in every form and size", T, float, double,
                   std::int32_t, std::int64_t) {
  const std::int64_t sizes[][3] = {
      {1, 1, 1},     {1, 5, 1},     {1, 100, 70}, {70, 100, 1}, {3, 4, 5},     {8, 8, 8},
      {9, 17, 10},   {100, 50, 10}, {17, 3, 16},  {20, 33, 17}, {65, 40, 129}, {300, 20, 40},
      {7, 9, 31},    {13, 6, 32},   {5, 7, 33},   {23, 1, 40},  {12, 5, 64},   {4, 3, 300},
      {30, 11, 300}, {485, 7, 21},  {0, 3, 4},    {4, 3, 0},    {4, 0, 3},     {1, 0, 1}};
  for (const auto& s : sizes) check_product<T>(s[0], s[1], s[2]);
}

TEST_CASE_TEMPLATE("a row takes its columns in registers of every width", T, float, double,
                   std::int32_t, std::int64_t) {
  for (std::int64_t n = 1; n < 140; ++n) check_product<T>(1, 37, n);
}

TEST_CASE("large products are computed in pieces") {
  check_product<float>(500, 60, 130);
  check_product<float>(60, 130, 500);
  check_product<double>(400, 90, 400);
}

TEST_CASE("integer products wrap") {
  any_array a = filled<std::int32_t>({2, 20}, {1 << 30}), b = filled<std::int32_t>({20, 3}, {7});
  CHECK(identical(run_op(op::matmul(), {a, b}), naive<std::int32_t>(a, b, false, false)));
}

TEST_CASE("products have the same bits for any number of threads") {
  for (auto [m, k, n] : {std::tuple{1000, 300, 400}, std::tuple{300, 784, 1000},
                         std::tuple{3000, 200, 10}, std::tuple{4000, 500, 1}}) {
    any_array a = moderate<float>({m, k}, 1), b = moderate<float>({k, n}, 2);
    any_array first;
    for (int threads : {1, 2, 4}) {
      set_intra_op_threads(threads);
      any_array c = run_op(op::matmul(), {a, b});
      if (!first.valid()) first = c;
      CHECK(identical(c, first));
    }
    set_intra_op_threads(0);
  }
}

namespace {

/// A matrix of a batch.
any_array matrix_of(const any_array& batch, std::int64_t i) {
  const dims& d = batch.shape();
  any_array one(batch.type(), {d[d.n - 2], d.back()});
  std::memcpy(one.mutable_raw(), static_cast<const char*>(batch.raw()) + i * one.bytes(),
              one.bytes());
  return one;
}
dims with_matrix(dims leading, std::int64_t rows, std::int64_t columns) {
  leading.push_back(rows), leading.push_back(columns);
  return leading;
}
/// Compares each product of a batch with the same product alone: bit by bit, except where rows of
/// several matrices are those of one, or an operand is transposed.
template <class T>
void check_batch(const dims& of_a, const dims& of_b, std::int64_t m, std::int64_t k, std::int64_t n,
                 bool bits = true) {
  dims of_c;
  REQUIRE(broadcast(of_a, of_b, of_c));
  const broadcast_index from_a(of_a, of_c), from_b(of_b, of_c);
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      const any_array a = moderate<T>(with_matrix(of_a, ta ? k : m, ta ? m : k), 1),
                      b = moderate<T>(with_matrix(of_b, tb ? n : k, tb ? k : n), 2);
      INFO(str(a.shape(), " x ", b.shape(), ta ? " ta" : "", tb ? " tb" : ""));
      const any_array c = run_op(op::matmul{ta, tb}, {a, b});
      CHECK(c.shape() == with_matrix(of_c, m, n));
      for (std::int64_t i = 0; i < of_c.elements(); ++i) {
        CAPTURE(i);
        const auto at = static_cast<std::size_t>(i);
        const any_array alone = run_op(
            op::matmul{ta, tb}, {matrix_of(a, from_a.offset[at]), matrix_of(b, from_b.offset[at])});
        const any_array here = matrix_of(c, i);
        if (bits && ((!ta && !tb) || std::is_integral_v<T>))
          CHECK(identical(here, alone));
        else
          CHECK(difference(here, alone, 8, static_cast<double>(k)) == "");
      }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("each product of a batch has the bits that it has alone", T, float, double,
                   std::int32_t, std::int64_t) {
  const std::int64_t sizes[][3] = {{1, 1, 1},    {1, 70, 1},   {1, 40, 33},  {33, 40, 1},
                                   {3, 4, 5},    {17, 3, 16},  {20, 33, 17}, {13, 600, 40},
                                   {65, 40, 70}, {250, 9, 12}, {4, 0, 3},    {0, 3, 4}};
  for (const auto& s : sizes)
    for (const auto& [a, b] : {std::pair<dims, dims>{{5}, {5}},
                               {{2, 3}, {2, 3}},
                               {{}, {4}},
                               {{1, 3}, {2, 1}},
                               {{2, 1, 2}, {2, 2, 1, 2}}})
      check_batch<T>(a, b, s[0], s[1], s[2], b.n == 0 || b.back() > 1);
}

TEST_CASE_TEMPLATE("one matrix on the right multiplies the rows of all on the left", T, float,
                   double, std::int32_t) {
  for (const auto& [a, b] : {std::pair<dims, dims>{{5}, {}},
                             {{2, 3}, {1}},
                             {{2, 3}, {2, 1}},
                             {{0}, {}},
                             {{2, 1, 3}, {3, 1}}}) {
    check_batch<T>(a, b, 6, 17, 9, false);
    check_batch<T>(a, b, 1, 30, 40, false);
    check_batch<T>(a, b, 70, 5, 1, false);
  }
}

TEST_CASE("batches have the same bits for any number of threads") {
  struct batch {
    dims a, b;
    std::int64_t m, k, n;
  };
  const batch batches[] = {{{64}, {64}, 128, 64, 128}, {{3}, {3}, 500, 120, 300},
                           {{12}, {12}, 384, 64, 384}, {{4000}, {4000}, 4, 5, 3},
                           {{2}, {2}, 1, 600, 4000},   {{5000}, {5000}, 1, 40, 1},
                           {{40, 1}, {8}, 30, 40, 50}, {{7}, {}, 100, 64, 200}};
  for (const batch& given : batches)
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        const any_array a = moderate<float>(
                            with_matrix(given.a, ta ? given.k : given.m, ta ? given.m : given.k)),
                        b = moderate<float>(
                            with_matrix(given.b, tb ? given.n : given.k, tb ? given.k : given.n));
        INFO(str(a.shape(), " x ", b.shape(), ta ? " ta" : "", tb ? " tb" : ""));
        any_array first;
        for (int threads : {1, 2, 4}) {
          set_intra_op_threads(threads);
          const any_array c = run_op(op::matmul{ta, tb}, {a, b});
          if (!first.valid()) first = c;
          CHECK(identical(c, first));
        }
        set_intra_op_threads(0);
      }
}

TEST_CASE("extents known only at run time are checked") {
  any_array a = moderate<float>({2, 3}), b = moderate<float>({3, 4}), c = moderate<float>({5, 4});
  prepared k(record_of<op::matmul>, encode(op::matmul()), types_of({a, b}));
  CHECK(error_of([&] {
          k.kernel->prepare(types_of({a, c}), k.node.outputs);
        }) == "invalid_argument: [matmul] inner extents differ: (2,3) x (5,4)");
  const any_array d = moderate<float>({2, 2, 3}), e = moderate<float>({3, 3, 4});
  CHECK(error_of([&] {
          k.kernel->prepare(types_of({d, e}), k.node.outputs);
        }) ==
        "invalid_argument: [matmul] leading extents differ on axis -3, and none is 1: "
        "(2,2,3) x (3,3,4)");
}
