// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deft/deft.hpp>
#include <limits>

#include "modeling.hpp"

using namespace deft;
using testing::own_graph;

namespace {

/// Compares with sums in double along the middle axis of (outer,n,inner).
template <class T>
void check(session& s, std::int64_t outer, std::int64_t n, std::int64_t inner,
           const cumsum_options& o) {
  CAPTURE(n);
  CAPTURE(inner);
  CAPTURE(o.exclusive);
  CAPTURE(o.reverse);
  placeholder<T, dyn, dyn, dyn> x("x");
  any_array a(dtype_of<T>, {outer, n, inner});
  for (std::int64_t i = 0; i < a.elements(); ++i)
    a.template mutable_data<T>()[i] = static_cast<T>(std::sin(static_cast<double>(i)) * 100);
  const ndarray<T, dyn, dyn, dyn> v(std::move(a));
  const auto y = s.run(cumsum(x, axis<1>, o), x = v);
  REQUIRE(y.extents() == v.extents());
  double worst = 0;
  for (std::int64_t r = 0; r < outer; ++r)
    for (std::int64_t c = 0; c < inner; ++c) {
      long double sum = 0, magnitudes = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t at = o.reverse ? n - 1 - i : i;
        const auto add = [&] {
          sum += v(r, at, c), magnitudes += std::abs((long double)v(r, at, c));
        };
        if (!o.exclusive) add();
        const long double off = std::abs(y(r, at, c) - sum);
        if (off > 0) worst = std::max(worst, static_cast<double>(off / magnitudes));
        if (o.exclusive) add();
      }
    }
  if constexpr (std::is_integral_v<T>)
    CHECK(worst == 0);
  else
    CHECK(worst <= 5 * std::log2(static_cast<double>(n) + 2) * std::numeric_limits<T>::epsilon());
}

}  // namespace

TEST_CASE_TEMPLATE("sums up to each element are within 5 log2 n units in the last place", T, float,
                   double, std::int64_t) {
  own_graph own;
  session s;
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true})
      for (const auto& [outer, n, inner] : {std::tuple{1, 1, 1},
                                            {3, 15, 1},
                                            {2, 16, 1},
                                            {2, 17, 1},
                                            {1, 256, 1},
                                            {1, 257, 3},
                                            {2, 5000, 1},
                                            {1, 70'000, 1},
                                            {2, 300, 5},
                                            {3, 40, 70},
                                            {1, 17, 200}})
        check<T>(s, outer, n, inner, {.exclusive = exclusive, .reverse = reverse});
}
