// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <deft/deft.hpp>
#include <numeric>
#include <random>

#include "modeling.hpp"

using namespace deft;
using testing::error_of;
using testing::own_graph;

namespace {

/// Numbers with many equal ones, some NaN and both zeros among them.
template <class T>
ndarray<T, dyn, dyn> numbers(std::int64_t rows, std::int64_t n) {
  any_array a(dtype_of<T>, {rows, n});
  std::mt19937 random(static_cast<unsigned>(n));
  for (std::int64_t i = 0; i < rows * n; ++i) {
    const int k = static_cast<int>(random() % 2000) - 1000;
    T v = static_cast<T>(k);
    if constexpr (std::is_floating_point_v<T>) {
      if (k == 7) v = static_cast<T>(NAN);
      if (k == 8) v = -T(0);
      if (k == 9) v = static_cast<T>(-INFINITY);
    }
    a.template mutable_data<T>()[i] = v;
  }
  return ndarray<T, dyn, dyn>(std::move(a));
}
template <class T>
bool comes_before(T a, T b, bool descending) {
  if (a != a || b != b) return descending ? a != a && b == b : a == a && b != b;
  return descending ? a > b : a < b;
}

}  // namespace

TEST_CASE_TEMPLATE("sort, argsort and top_k agree with std::stable_sort", T, float, double,
                   std::int32_t, std::int64_t, std::uint8_t) {
  own_graph own;
  placeholder<T, dyn, dyn> x("x");
  session s;
  constexpr std::pair<std::int64_t, std::int64_t> sizes[] = {{5, 1},   {3, 17},  {40, 300},
                                                             {3, 767}, {2, 769}, {2, 5000}};
  for (const auto& size : sizes)
    for (const bool descending : {false, true}) {
      const std::int64_t rows = size.first, n = size.second;
      CAPTURE(n);
      CAPTURE(descending);
      const ndarray<T, dyn, dyn> v = numbers<T>(rows, n);
      const std::int64_t k = (n + 2) / 3;
      const sort_options o{.descending = descending};
      const auto [values, indices] = top_k(x, k);
      const auto [sorted, order, top, places] =
          s.run(sort(x, axis<1>, o), argsort(x, axis<-1>, o), values, indices, x = v);
      for (std::int64_t r = 0; r < rows; ++r) {
        std::vector<std::int64_t> right(static_cast<std::size_t>(n));
        std::iota(right.begin(), right.end(), 0);
        const std::int64_t row = r;
        std::stable_sort(right.begin(), right.end(), [&](std::int64_t a, std::int64_t b) {
          return comes_before(v(row, a), v(row, b), descending);
        });
        bool same = true, same_top = true;
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t at = right[static_cast<std::size_t>(i)];
          const T a = v(r, at), b = sorted(r, i);
          same = same && order(r, i) == at && (a == b || (a != a && b != b));
          if (!descending || i >= k) continue;
          const T c = top(r, i);
          same_top = same_top && places(r, i) == at && (a == c || (a != a && c != c));
        }
        CHECK(same);
        CHECK(same_top);
      }
    }
}

TEST_CASE_FIXTURE(own_graph, "top_k has the types that its argument tells") {
  placeholder<float, dyn, 10> x("x");
  const auto [values, indices] = top_k<3>(x);
  static_assert(std::is_same_v<decltype(top_k<3>(x)),
                               std::pair<tensor<float, dyn, 3>, tensor<std::int64_t, dyn, 3>>>);
  CHECK(values.handle().type().shape == dims{dyn, 3});
  CHECK(top_k(x, 4).second.handle().type().shape == dims{dyn, 4});
  CHECK(error_of([&] {
          top_k(x, 11);
        }).starts_with("invalid_argument: [top_k] expects 11 elements or more along a last axis"));
  CHECK(error_of([&] {
          top_k(x, -1);
        }).starts_with("invalid_argument: [top_k] expects a number of elements, and got -1"));
}
