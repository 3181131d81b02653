// SPDX-License-Identifier: Apache-2.0
// On both sides of every size at which plans and kernels change how they compute, results have the
// same bits fused and unfused, on one thread and on several, and are close to double.
#include <deft/kernels/vector_registers.hpp>
#include <deft/op/avg_pool.hpp>
#include <deft/op/conv2d.hpp>
#include <deft/op/gather.hpp>
#include <deft/op/gradients.hpp>
#include <deft/op/max_pool.hpp>
#include <deft/op/softmax_cross_entropy.hpp>
#include <deft/plan/thresholds.hpp>

#include "random_graphs.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::difference;
using testing::distance;
using testing::make_graph;
using testing::outputs;
using testing::values_for;

namespace {

constexpr double tolerance = 1e-3;
/// Of means of thousands of addends: that shows if a few of them are missing.
constexpr double of_long_sums = 1e-5, of_losses = 1e-4;

outputs run(std::uint64_t seed, dtype t, const dims& extents, bool known, bool fuse, int threads) {
  graph own;
  const auto in = as_default(own);
  dims shape = extents;
  if (!known) shape.e[0] = dyn;
  const testing::random_graph g = make_graph(seed, t, {shape, {""}, true, seed % 2 == 0});
  session s({.fuse = fuse, .intra_op_threads = threads});
  return testing::run(s, g, extents);
}

/// Some random programs over these extents.
void check(const dims& extents) {
  static std::uint64_t seed = 0;
  for (const bool known : {true, false})
    for (const dtype t : {dtype::float32, dtype::int64}) {
      CAPTURE(++seed);
      CAPTURE(str(extents, " ", t, known ? "" : ", the first unknown"));
      const outputs fused = run(seed, t, extents, known, true, 1);
      CHECK(difference(fused, run(seed, t, extents, known, true, 3)) == "");
      CHECK(difference(fused, run(seed, t, extents, known, false, 1)) == "");
      if (t == dtype::float32)
        CHECK(distance(fused, run(seed, dtype::float64, extents, known, false, 1)) < tolerance);
    }
}
template <class F>
void around(std::int64_t size, F f) {
  for (const std::int64_t n : {size - 1, size, size + 1})
    if (n > 0) f(n);
}

using operation_of = std::function<std::vector<any_tensor>(const std::vector<any_tensor>&)>;

outputs run(const std::vector<dims>& operands, dtype t, const operation_of& f, int threads) {
  graph own;
  const auto in = as_default(own);
  std::vector<any_tensor> x;
  std::vector<feed_value> feeds;
  for (const dims& d : operands) {
    x.push_back(make_placeholder("x", t, d));
    feeds.push_back(deft::detail::array_feed(x.back().handle(), values_for(x.back(), d, x.size())));
  }
  session s({.intra_op_threads = threads});
  return s.run(f(x), feeds);
}
/// An operation with a kernel of its own, and its gradients.
void check(const std::vector<dims>& operands, const operation_of& f, double most = tolerance) {
  CAPTURE(str(operands[0], " ", operands.back()));
  const outputs one = run(operands, dtype::float32, f, 1);
  CHECK(difference(one, run(operands, dtype::float32, f, 3)) == "");
  CHECK(distance(one, run(operands, dtype::float64, f, 1)) < most);
}
operation_of with_gradients(const std::function<any_tensor(const std::vector<any_tensor>&)>& f) {
  return [=](const std::vector<any_tensor>& x) {
    const any_tensor y = f(x);
    std::vector<any_tensor> all = gradients(mean(square(y)), x);
    all.push_back(y);
    return all;
  };
}

}  // namespace

TEST_CASE("programs over as many elements as a threshold") {
  for (const std::int64_t size : thresholds::elements) around(size, [](auto n) { check({n}); });
  // As many bytes, of two to five operands and results.
  for (const std::int64_t size : thresholds::bytes)
    for (const std::int64_t each : {8, 12, 16, 20}) around(size / each, [](auto n) { check({n}); });
}

TEST_CASE("programs over rows as long, or as many, as a threshold") {
  for (const std::int64_t size : thresholds::row_elements)
    around(size, [](auto n) { check({3, n}), check({70, n}); });
  for (const std::int64_t size : thresholds::rows)
    around(size, [](auto n) { check({n, 5}), check({n, 130}); });
}

TEST_CASE("programs over as many elements as registers have lanes") {
  for (const std::int64_t lanes : {2, 4, 8, 16, 32, 64, 128})
    around(lanes, [](auto n) { check({n}), check({9, n}), check({5000, n}); });
}

TEST_CASE("products of matrices as large as a threshold") {
  const auto product = with_gradients([](const auto& x) { return matmul(x[0], x[1]); });
  const auto check_product = [&](std::int64_t m, std::int64_t k, std::int64_t n) {
    check({{m, k}, {k, n}}, product);
  };
  for (const std::int64_t size : thresholds::product_columns)
    around(size, [&](auto n) { check_product(40, 50, n), check_product(1, 50, n); });
  for (const std::int64_t size : thresholds::product_rows_of)
    around(size, [&](auto m) { check_product(m, 60, 10), check_product(m, 70, 70); });
  for (const std::int64_t size : thresholds::product_depths)
    around(size, [&](auto k) { check_product(30, k, 7), check_product(30, k, 40); });
  const std::int64_t deepest = thresholds::panel_bytes / (2 * cpu::register_bytes);
  around(deepest, [&](auto k) { check_product(20, k, 33); });
  around(thresholds::left_bytes / 4 / 512, [&](auto m) { check_product(m, 512, 20); });
  around(thresholds::transposed_left_bytes / 4 / 256, [&](auto m) { check_product(m, 256, 20); });
  for (const std::int64_t lanes : {4, 8, 16, 32, 64})
    around(lanes, [&](auto n) { check_product(13, 9, n), check_product(n, n, 3); });
}

TEST_CASE("a row times a matrix that is taken row by row from a size on") {
  const auto product = with_gradients([](const auto& x) { return matmul(x[0], x[1]); });
  constexpr std::int64_t row = thresholds::streamed_row / 4,
                         rows = thresholds::streamed_matrix / thresholds::streamed_row;
  const auto check_row = [&](std::int64_t k, std::int64_t n) {
    check({{1, k}, {k, n}}, product, of_long_sums);
    check({{k, n}, {n, 1}}, product, of_long_sums);  // the second gradient is such a product, too
  };
  around(row, [&](auto n) { check_row(rows, n); });
  around(rows, [&](auto k) { check_row(k, row); });
  for (const std::int64_t pages : {1, 2}) around(pages * 1024, [&](auto n) { check_row(rows, n); });
}

TEST_CASE("products with as much work as a kernel is split from") {
  // By Eigen, whose pieces are of rows or of columns.
  const auto product = with_gradients([](const auto& x) { return matmul(x[0], x[1]); });
  constexpr std::int64_t n = 70;
  for (const std::int64_t m : {2 * thresholds::packed_rows, 4 * thresholds::packed_rows})
    around(static_cast<std::int64_t>(thresholds::split_work * 100) / (m * n), [&](auto k) {
      check({{m, k}, {k, n}}, product);
      check({{n, k}, {k, m}}, product);
    });
}

TEST_CASE("expressions with as much work as a kernel is split, and the team called, from") {
  // What an element costs is the kernels' affair: from less work than any threshold to more.
  const auto expensive = [](const std::vector<any_tensor>& x) {
    const any_tensor y = tanh(exp(sin(x[0])) * cos(x[1]));
    return std::vector<any_tensor>{y, sum(y, axes{y.rank() - 1}), mean(y)};
  };
  static_assert(thresholds::awake_team < thresholds::split_work);
  static_assert(thresholds::split_work < thresholds::asleep_team);
  for (std::int64_t n = 128; n <= 1 << 18; n *= 2) {
    check({{n}, {n}}, expensive, of_long_sums);
    check({{n / 64, 64}, {n / 64, 64}}, expensive, of_long_sums);
    check({{n / 64, 64}, {64}}, expensive, of_long_sums);
  }
}

TEST_CASE("softmax and its cross entropy of rows as long, or as many, as a threshold") {
  const auto losses =
      with_gradients([](const auto& x) { return softmax_cross_entropy(x[0], softmax(x[1])); });
  const auto check_rows = [&](std::int64_t rows, std::int64_t n) {
    check({{rows, n}, {rows, n}}, losses);
  };
  around(thresholds::rows_of_logarithms, [&](auto rows) { check_rows(rows, 10); });
  around(thresholds::softmax_chunk, [&](auto n) { check_rows(3, n); });
  around(thresholds::softmax_chunk / 16, [&](auto rows) { check_rows(rows, 16); });
  for (const std::int64_t lanes : {2, 4, 8, 16})
    for (const std::int64_t packs : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3},
                                     thresholds::softmax_packs, thresholds::addends_together})
      around(lanes * packs, [&](auto n) { check_rows(33, n); });
  // A leaf has so many registers, and the first level of sums so many leaves.
  constexpr std::int64_t leaf = thresholds::addends_together * cpu::register_bytes / 4;
  around(leaf * thresholds::addends_together, [&](auto n) {
    check({{2, n}, {2, n}}, losses, of_losses);
  });
}

TEST_CASE("first places in rows as long as a threshold") {
  const auto places = [](const std::vector<any_tensor>& x) {
    const auto as_x = [&](const any_tensor& t) {
      return x[0].type() == dtype::float64 ? any_tensor(cast<double>(t)) : cast<float>(t);
    };
    return std::vector<any_tensor>{as_x(argmax(x[0], axes{1})), as_x(argmin(x[0], axes{1})),
                                   max(x[0], axes{1})};
  };
  for (const std::int64_t size : {thresholds::compared_one_by_one, thresholds::compared_alone,
                                  thresholds::searched_block, 2 * thresholds::searched_block})
    around(size, [&](auto n) { check({{1, n}}, places), check({{70, n}}, places); });
  for (const std::int64_t lanes : {2, 4, 8, 16, 32, 64})
    around(lanes, [&](auto n) { check({{1, n}}, places), check({{33, n}}, places); });
}

TEST_CASE("convolutions and pools as large as a threshold") {
  const auto convolved = with_gradients(
      [](const auto& x) { return conv2d(x[0], x[1], {.padding = padding_mode::same}); });
  const auto check_convolution = [&](const dims& x, std::int64_t taps, std::int64_t channels) {
    check({x, {taps, taps, x[3], channels}}, convolved);
  };
  around(thresholds::few_outputs, [&](auto n) { check_convolution({2, 9, 9, 20}, 3, n); });
  around(thresholds::band_bytes / 4 / 64, [&](auto n) { check_convolution({1, 5, n, 8}, 3, 8); });
  for (const std::int64_t lanes : {4, 8, 16, 32, 64})
    around(lanes, [&](auto n) {
      check_convolution({2, 6, 5, n}, 3, 5), check_convolution({2, 6, 5, 3}, 3, n);
      check({{2, 9, 8, n}}, with_gradients([](const auto& x) {
              return avg_pool(x[0], {.window = {3, 2}, .stride = {2, 1}}) +
                     max_pool(x[0], {.window = {3, 2}, .stride = {2, 1}});
            }));
    });
  for (const std::int64_t registers : {0, 4, 8, 16, 32})
    around(registers + thresholds::few_channels, [&](auto n) {
      check({{2, 7, 6, n}}, with_gradients([](const auto& x) {
              return avg_pool(x[0], {.window = {2, 2}, .stride = {2, 2}}) +
                     max_pool(x[0], {.window = {2, 2}, .stride = {2, 2}});
            }));
    });
  const auto check_average = [](const dims& x, const dims& window) {
    check({x}, with_gradients([=](const auto& in) {
            return avg_pool(in[0], {.window = window, .stride = {1, 1}});
          }),
          of_long_sums);
  };
  static_assert(thresholds::addends_together == 64);
  for (const dims& window : {dims{7, 9}, dims{8, 8}, dims{13, 5}})
    check_average({1, 20, 21, 3}, window);
  // The first level of sums, and the second one.
  for (const std::int64_t size : {64, 2 * 64, 64 * 64, 2 * 64 * 64})
    around(size, [&](auto n) { check_average({1, 2, n + 2, 3}, {1, n}); });
}

TEST_CASE("convolutions with as many products as the levels of a tile's sums") {
  const auto convolved = with_gradients(
      [](const auto& x) { return conv2d(x[0], x[1], {.padding = padding_mode::same}); });
  const auto check_convolution = [&](const dims& x, std::int64_t taps, std::int64_t channels) {
    check({x, {taps, taps, x[3], channels}}, convolved);
  };
  constexpr std::int64_t leaf = thresholds::window_products, lanes = cpu::register_bytes / 4;
  constexpr std::int64_t level = leaf * thresholds::addends_together;
  for (const std::int64_t size : {thresholds::addends_together, leaf, 2 * leaf, level}) {
    // Of the convolution, of the gradient by its input, and of that by its filter.
    around(size, [&](auto n) { check_convolution({1, 1, 2, n}, 1, 7); });
    around(size, [&](auto n) { check_convolution({1, 1, 2, 7}, 1, n); });
    around(size, [&](auto n) { check({{1, 1, n, 3}, {1, 1, 3, 7}}, convolved, of_long_sums); });
  }
  // Along the rows of windows a register has so many of them.
  for (const std::int64_t size : {leaf, level})
    around(size * lanes, [&](auto n) { check_convolution({1, 1, 1, n}, 1, 2); });
  // Leaves that end within a row of a window, or with it.
  for (const std::int64_t taps : {2, 3, 4})
    around(leaf / (taps * taps), [&](auto n) { check_convolution({1, 5, 5, n}, taps, 7); });
  around(leaf / 8, [&](auto n) { check_convolution({2, 8, n, 3}, 2, 7); });
}

TEST_CASE("gradients by filters of as many images, or as large, as a threshold") {
  const auto convolved = with_gradients([](const auto& x) { return conv2d(x[0], x[1]); });
  constexpr std::int64_t groups = thresholds::filter_pieces;
  constexpr std::int64_t level = thresholds::addends_together;
  // Images of a group, each of which is a band: sums have two levels above `level` of them, and
  // three from level * (level + 1) on.
  for (const std::int64_t bands : {level, 2 * level, level * (level + 1)})
    around(bands, [&](auto n) {
      check({{groups * n - 1, 1, 1, 2}, {1, 1, 2, 3}}, convolved, of_long_sums);
    });
  // Images, and rows of the filter, that there is a piece for.
  around(groups, [&](auto n) { check({{n, 3, 3, 2}, {2, 2, 2, 5}}, convolved); });
  for (const std::int64_t pieces : {1, 2, 3, 8})
    around(pieces * thresholds::filter_rows, [&](auto n) {
      check({{1, 2, 2, n}, {1, 1, n, 5}}, convolved);
    });
  // Tiles of a panel that columns fill, for each height of a tile.
  constexpr std::int64_t columns = 64;
  for (const std::int64_t rows : {6, 8})
    around(rows * thresholds::rows_of_panel, [&](auto n) {
      for (const std::int64_t filled : {columns / 4, columns / 2, columns})
        check({{2, 3, 3, n}, {1, 1, n, filled}}, convolved);
    });
  // A filter so large that there are fewer groups than images.
  for (const std::int64_t some : {2, 3})
    around(thresholds::filter_part_bytes * groups / (some * 4 * columns), [&](auto n) {
      check({{3, 1, 1, n}, {1, 1, n, columns}}, convolved);
    });
}

TEST_CASE("sums of as many rows of the same index as a threshold") {
  const auto check_rows = [](std::int64_t count, std::int64_t apart) {
    // Of index 1, and after each `apart` of them one of another.
    any_array index(dtype::int64, {count + (count - 1) / apart});
    for (std::int64_t i = 0; i < index.elements(); ++i)
      index.mutable_data<std::int64_t>()[i] =
          i % (apart + 1) == apart ? i / (apart + 1) % 2 * 4 : 1;
    const std::int64_t n = index.elements();
    check(
        {{5, 2}, {n, 2}},
        [&](const std::vector<any_tensor>& x) {
          const any_tensor rows = gather(x[0], deft::detail::add_constant(index, {}));
          return gradients(mean(square(rows + x[1])), {x[0]});
        },
        of_long_sums);
  };
  constexpr std::int64_t part = thresholds::rows_together;
  for (const std::int64_t size : {part, 2 * part, part * part, part * (part + 1)})
    around(size, [&](auto n) { check_rows(n, n), check_rows(n, 5); });
  around(part * part * part, [&](auto n) { check_rows(n, n); });
}

TEST_CASE("as many elements as are moved at once") {
  const auto moved = [](const std::vector<any_tensor>& x) {
    const int last = x[0].rank() - 1;
    dims from = dims::filled(x[0].rank(), 0), size = x[0].shape(), wide = x[0].shape();
    from.e[last] = 1, size.e[last] -= 1;
    const any_tensor parts[] = {x[0], x[0]};
    return std::vector<any_tensor>{slice(x[0], from, size), pad(x[0], from, from),
                                   concat(axes{last}, parts), transpose(x[0]),
                                   broadcast_to(x[0], [&] {
                                     dims to = dims::filled(wide.rank() + 1, 3);
                                     std::ranges::copy(wide, to.begin() + 1);
                                     return to;
                                   }())};
  };
  around(thresholds::moved_bytes / 4, [&](auto n) { check({{n}}, moved), check({{3, n}}, moved); });
  around(thresholds::moved_bytes / 4 / thresholds::transposed_square, [&](auto n) {
    check({{n, thresholds::transposed_square}}, moved);
  });
  for (const std::int64_t size : {thresholds::transposed_square, 2 * thresholds::transposed_square})
    around(size, [&](auto n) { check({{n, n}}, moved), check({{n, 3, n + 1}}, moved); });
}

TEST_CASE("runs that are written past the caches") {
  const auto joined = [](const std::vector<any_tensor>& x) {
    return std::vector<any_tensor>{concat(axes{x[0].rank() - 1}, x)};
  };
  constexpr std::int64_t run = thresholds::uncached_run / 4,
                         count = thresholds::uncached_bytes / thresholds::uncached_run;
  around(run, [&](auto n) { check({{count, n}, {count, 3}}, joined); });
  around(count, [&](auto m) { check({{m, run}, {m, run}}, joined); });
  around(thresholds::uncached_bytes / 4, [&](auto n) { check({{n}, {n}}, joined); });
}

TEST_CASE("as many rows as are chosen by an index at once") {
  for (const std::int64_t width : {1, 4})
    around(thresholds::indexed_bytes / std::max<std::int64_t>(8, 4 * width), [&](auto n) {
      any_array index(dtype::int32, {n});
      for (std::int64_t i = 0; i < n; ++i)
        index.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(i * 7 % 5);
      check({{5, width}}, with_gradients([&](const std::vector<any_tensor>& x) {
              return gather(x[0], deft::detail::add_constant(index, {}));
            }));
    });
}

TEST_CASE("as many elements of a narrow type as are computed with at once") {
  around(thresholds::widened_block, [](auto n) {
    const auto computed = [](const std::vector<any_tensor>& x) {
      return std::vector<any_tensor>{x[0] + x[1], maximum(x[0], x[1]) * x[0]};
    };
    for (const dims& other : {dims{n}, dims{}}) {
      const outputs narrow = run({{n}, other}, dtype::int8, computed, 1);
      CHECK(difference(narrow, run({{n}, other}, dtype::int8, computed, 3)) == "");
    }
  });
}
