// SPDX-License-Identifier: Apache-2.0
// Compiled kernels fold rows while they compute the elements.
#include <deft/core/philox.hpp>
#include <deft/deft.hpp>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

template <class Array>
Array filled(Array a, philox_stream& random) {
  for (auto& e : a) e = static_cast<float>(random.below(2000)) / 997 - 1;
  return a;
}

/// Compares rows of N elements by compiled expressions, by regions of the plan, and by plain folds.
template <std::int64_t N>
void compare() {
  graph own;
  auto in_own = as_default(own);
  placeholder<float, dyn, N> x("x");
  placeholder<float, dyn, 1> column("column");
  placeholder<float, N> row("row");
  placeholder<float> scalar("scalar");
  const any_tensor ax(x), acolumn(column), arow(row), ascalar(scalar);
  session with({.intra_op_threads = 1}), without({.fuse = false, .intra_op_threads = 1});
  philox_stream random(7);
  auto fill = [&](auto a) { return filled(std::move(a), random); };
  for (const std::int64_t rows : {0, 1, 2, 15, 16, 17, 33, 300}) {
    CAPTURE(rows);
    const auto fed = fill(ndarray<float, dyn, N>(rows));
    const auto down = fill(ndarray<float, dyn, 1>(rows));
    const auto across = fill(ndarray<float, N>());
    // Each runs alone: together they would be one pass over elements that are kept.
    auto same = [&](const any_tensor& compiled, const any_tensor& found, auto... feeds) {
      const any_array expected = without.run(found, feeds...);
      CHECK(with.run(compiled, feeds...) == expected);
      CHECK(with.run(found, feeds...) == expected);
    };
    same(any_tensor(sum(x * row + column, axis<1>)), sum(ax * arow + acolumn, axis<1>), x = fed,
         row = across, column = down);
    same(any_tensor(max(square(x - column) * scalar, axis<1>)),
         max(square(ax - acolumn) * ascalar, axis<1>), x = fed, column = down, scalar = 1.25f);
    same(any_tensor(mean(x * x, axis<1>)), mean(ax * ax, axis<1>), x = fed);
  }
}

}  // namespace

TEST_CASE("rows folded by compiled kernels have the bits of plain folds") {
  compare<63>();
  compare<64>();
  compare<65>();
  compare<130>();
  compare<1024>();
  compare<4096>();  // one leaf
  compare<4161>();
  compare<9000>();
}

TEST_CASE_TEMPLATE("normalized, scaled and shifted elements have the bits of each operation", T,
                   float, double) {
  graph own;
  auto in_own = as_default(own);
  session with({.intra_op_threads = 1}), without({.fuse = false, .intra_op_threads = 1});
  philox_stream random(3);
  const std::int64_t rows = 37;
  auto of = [&]<std::int64_t N>(std::integral_constant<std::int64_t, N>) {
    placeholder<T, dyn, N> x("x");
    placeholder<T, N> gain("gain"), shift("shift");
    const any_tensor a(x), g(gain), s(shift);
    const auto fed = filled(ndarray<T, dyn, N>(rows), random);
    const auto scale = filled(ndarray<T, N>(), random), by = filled(ndarray<T, N>(), random);
    auto normalized = [&](const any_tensor& m, const any_tensor& inverse) {
      const any_tensor y = (a - m) * inverse * g + s;
      CHECK(with.run(y, x = fed, gain = scale, shift = by) ==
            without.run(y, x = fed, gain = scale, shift = by));
    };
    auto over = [&](const auto& axes) {
      const any_tensor m = mean(a, axes, keepdims);
      normalized(m, 1 / sqrt(mean(square(a - m), axes, keepdims) + 1e-3));
    };
    over(axis<1>);              // of rows
    over(axis<0>);              // of columns
    normalized(a * a, exp(a));  // of elements
    normalized(mean(a, axis<1>, keepdims), s);
  };
  of(std::integral_constant<std::int64_t, 10>());
  of(std::integral_constant<std::int64_t, 200>());
  of(std::integral_constant<std::int64_t, 1027>());
}
