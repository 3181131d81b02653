// SPDX-License-Identifier: Apache-2.0
// Regions whose results are written over variables and operands, and folds beside such results.
#include <deft/plan/fuse.hpp>
#include <deft/session/session.hpp>

#include "outputs.hpp"
#include "planning.hpp"

using namespace deft;
using namespace deft::ext;
using testing::difference;
using testing::outputs;
using testing::values_for;

namespace {

/// Three variables, each updated once, by values computed from all of them before and after
/// updates.
template <class T>
struct random_updates {
  using array = ndarray<T, 33, 65>;
  placeholder<T, 33, 65> x{"x"};
  placeholder<T, 65> row{"row"};
  std::vector<variable<T, 33, 65>> variables;
  std::vector<any_tensor> updated;  ///< the new values, the last one of which needs most others

  explicit random_updates(std::uint64_t seed) {
    philox_stream random(seed);
    const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random.below(n)); };
    std::vector<any_tensor> values{x, any_tensor(x) * any_tensor(row)};
    for (const char* name : {"a", "b", "c"})
      values.push_back(variables.emplace_back(name, initializer(ones())));
    auto map = [&](const any_tensor& a, const any_tensor& b) -> any_tensor {
      switch (pick(5)) {
        case 0:
          return a + b;
        case 1:
          return a - b;
        case 2:
          return maximum(a, b);
        case 3:
          return square(a) - b;
        default:
          if constexpr (deft::ext::is_floating_type<T>)
            return tanh(a) / (square(b) + 1);
          else
            return minimum(a, b) * 3;
      }
    };
    for (auto& v : variables) {
      for (std::size_t n = 1 + pick(4); n-- > 0;)
        values.push_back(map(values[values.size() - 1 - pick(2)], values[pick(values.size())]));
      const any_tensor by = values.back() - values[1];  // needs all feeds
      updated.push_back(any_tensor(pick(2) ? v.assign_add(by).value() : v.assign_sub(by).value()));
      values.push_back(updated.back());
    }
  }
};

template <class T>
std::size_t check_updates(std::uint64_t seed) {
  graph own;
  auto in = as_default(own);
  random_updates<T> g(seed);
  session with({.intra_op_threads = 1}), without({.fuse = false, .intra_op_threads = 1});
  typename random_updates<T>::array x;
  ndarray<T, 65> row;
  philox_stream random(seed);
  for (auto& e : x) e = static_cast<T>(random.uniform(0, 3));
  for (auto& e : row) e = static_cast<T>(random.uniform(0, 2));
  auto run = [&](session& s) {
    outputs all;
    s.run(initialize_all());
    for (int i = 0; i < 3; ++i) {
      s.run(g.updated[2], g.x = x, g.row = row);
      const auto [a, b] = s.run(g.updated[0], g.updated[2], g.x = x, g.row = row);
      all.insert(all.end(), {a, b});
      for (auto& v : g.variables) all.push_back(s.run(any_tensor(v)));
    }
    return all;
  };
  CHECK(difference(run(with), run(without)) == "");
  flat_graph f = testing::on_cpu(testing::flat({g.updated[2]}));
  plan::fuse(f.graph, f.fetches);
  std::size_t most = 0;
  for (const auto& n : f.graph.nodes)
    if (n.op->role == op_role::update) most = std::max(most, n.outputs.size());
  return most;
}

}  // namespace

TEST_CASE("random updates in place have the same bits in one pass and in several") {
  std::size_t several = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const std::size_t most = seed % 5 == 0   ? check_updates<double>(seed)
                             : seed % 5 == 1 ? check_updates<std::int32_t>(seed)
                             : seed % 5 == 2 ? check_updates<std::int64_t>(seed)
                             : seed % 5 == 3 ? check_updates<std::uint8_t>(seed)
                                             : check_updates<float>(seed);
    several += most > 1;
  }
  CHECK(several > 20);
}

TEST_CASE("a fold beside elementwise results has the bits of the fold alone") {
  for (const dims& shape :
       {dims{2049}, dims{5000}, dims{70'001}, dims{300, 7}, dims{5, 1000}, dims{3, 2, 700}}) {
    CAPTURE(str(shape));
    graph own;
    const auto in_own = as_default(own);
    const any_tensor x = make_placeholder("x", dtype::float32, shape),
                     row = make_placeholder("row", dtype::float32, {shape[shape.rank() - 1]});
    const any_tensor products = sum(x * row), squares = sum(square(x - row)), most = max(x * row);
    session s;
    const auto feed = [&](const any_tensor& t, const dims& d) {
      return detail::array_feed(t.handle(), values_for(t, d, 3));
    };
    const auto run = [&](const auto&... what) {
      const auto r = s.run(what..., feed(x, shape), feed(row, {shape[shape.rank() - 1]}));
      if constexpr (sizeof...(what) == 1)
        return outputs{any_array(r)};
      else
        return std::apply([](const auto&... a) { return outputs{any_array(a)...}; }, r);
    };
    const outputs all = run(products, squares, most, x * 2 * row, tanh(x) + 1 - row),
                  together{all[0], all[1], all[2]},
                  alone{run(products)[0], run(squares)[0], run(most)[0]};
    CHECK(difference(together, alone) == "");
  }
}

TEST_CASE("a fold reads an operand before another result is written over it") {
  graph own;
  const auto in_own = as_default(own);
  for (const std::int64_t n : {63, 64, 65}) {
    for (const dtype t : {dtype::float32, dtype::float64, dtype::int64}) {
      CAPTURE(str(n, " ", t));
      const any_tensor x = make_placeholder("x", t, {n, n}), h = matmul(x, x), r = h * h;
      const any_tensor next = matmul(r, x);  // r is not fetched, and h is not needed any more
      std::vector<any_tensor> folds{max(r * h), sum(r - h), min(h - r)};
      if (is_floating(t)) folds.insert(folds.end(), {mean(r - h), sum(tanh(r) * h)});
      session with, without({.fuse = false});
      for (const any_tensor& f : folds) {
        const auto run = [&](session& s) {
          const auto [a, b] =
              s.run(f, next, detail::array_feed(x.handle(), values_for(x, {n, n}, 7)));
          return outputs{any_array(a), any_array(b)};
        };
        CHECK(difference(run(with), run(without)) == "");
      }
    }
  }
}
