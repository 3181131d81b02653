// SPDX-License-Identifier: Apache-2.0
// Random programs over thousands of elements: values, first and second gradients and trained
// variables have the same bits fused and unfused, and are close to the same in double.
#include <cstdlib>
#include <deft/op/gradients.hpp>
#include <deft/session/session.hpp>
#include <deft/train/optimizers.hpp>

#include "random_graphs.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using testing::difference;
using testing::distance;
using testing::graph_inputs;
using testing::kind_of_graph;
using testing::make_graph;
using testing::outputs;
using testing::random_graph;
using testing::values_for;

namespace {

/// How many programs of each kind: DEFT_TEST_PROGRAMS, or as many as continuous integration runs:
/// on simulated GPUs, which are slower, a tenth.
std::uint64_t programs(std::uint64_t usual) {
  const char* asked = std::getenv("DEFT_TEST_PROGRAMS");
  if (asked && *asked) return std::strtoull(asked, nullptr, 10);
  const char* gpus = std::getenv("DEFT_SIMULATED_GPUS");
  return gpus && *gpus && *gpus != '0' ? usual / 10 : usual;
}

constexpr dtype types[] = {dtype::float32, dtype::float64, dtype::float32, dtype::int32,
                           dtype::float32, dtype::int64,   dtype::uint8};

/// What the program of a seed works on: 5,000 to 400,000 elements, but at most `most`.
struct setting {
  dims extents;
  kind_of_graph kind;
  int threads;

  explicit setting(std::uint64_t seed, std::int64_t most = 400'000) {
    philox_stream random(seed * 7919);
    constexpr std::int64_t widths[] = {1, 7, 10, 64, 130, 257, 1000, 5003};
    const std::int64_t n = widths[random.below(8)];
    auto elements = static_cast<std::int64_t>(5000 * std::pow(80, random.uniform(0, 1)));
    elements = std::min(elements, most);
    extents = {std::max<std::int64_t>(1, elements / n), n};
    kind = {
        random.below(4) ? extents : dims{dyn, n}, {""}, random.below(2) == 0, random.below(4) > 0};
    threads = random.below(3) ? 1 : 2;
  }
};

/// Values of a random graph, and with `gradients` those of its fourth fetch with respect to all
/// inputs, and of the squares of these.
outputs run(std::uint64_t seed, const setting& of, dtype t, bool gradients, bool fuse) {
  graph own;
  auto in = as_default(own);
  random_graph g = make_graph(seed, t, of.kind);
  if (gradients) {
    const std::vector<any_tensor> inputs{g.x, g.y, g.row, g.column, g.scalar};
    const std::vector<any_tensor> first = deft::gradients(g.fetches[3], inputs);
    any_tensor squares = mean(square(first[0]));
    for (std::size_t i = 1; i < first.size(); ++i) squares = squares + mean(square(first[i]));
    const std::vector<any_tensor> second = deft::gradients(squares, inputs);
    g.fetches.insert(g.fetches.end(), first.begin(), first.end());
    g.fetches.insert(g.fetches.end(), second.begin(), second.end());
  }
  session s({.fuse = fuse, .intra_op_threads = of.threads});
  return testing::run(s, g, of.extents);
}

void check(std::uint64_t seed, dtype t, bool gradients, double tolerance) {
  const setting of(seed, gradients ? 100'000 : 400'000);
  CAPTURE(seed);
  CAPTURE(str(of.kind.shape, " ", t, " on ", of.threads));
  const outputs fused = run(seed, of, t, gradients, true);
  CHECK(difference(fused, run(seed, of, t, gradients, false)) == "");
  if (t == dtype::float32 && of.kind.smooth)
    CHECK(distance(fused, run(seed, of, dtype::float64, gradients, false)) < tolerance);
}

/// A step of training, with variables that are parts of a random expression: weights, or a gain of
/// each column, an offset of each column and a factor.
class model {
 public:
  model(std::uint64_t seed, const setting& of, dtype t, double rate)
      : x_(make_placeholder("x", t, of.kind.shape)),
        y_(make_placeholder("y", t, of.kind.shape)),
        column_(make_placeholder("column", t, testing::one_for_each_row(of.kind.shape))) {
    const std::int64_t n = of.extents[1];
    const dims weights = n > 1 && n <= 130 ? dims{n, n} : dims{n};
    auto made = [&](const char* name, const dims& shape, std::uint64_t number) {
      const any_array first = values_for(make_placeholder("", t, shape), shape, number);
      return variables_.emplace_back(name, shape, initializer(constant(first)), t);
    };
    const any_tensor w = made("weights", weights, 5), row = made("row", {n}, 6),
                     scalar = made("scalar", {}, 7);
    const any_tensor h = weights.rank() == 2 ? matmul(x_, w) * (1 / std::sqrt(double(n))) : x_ * w;
    const random_graph g = make_graph(seed, {h, y_, row, column_, scalar}, of.kind);
    const any_tensor loss = mean(square(tanh(g.fetches[0]))) + mean(square(tanh(g.fetches[2]))) +
                            mean(square(tanh(h * scalar + row + column_) - y_));
    train_ = optimizer_of(seed, rate)->minimize(loss);
  }

  outputs trained(session& s, const dims& extents) const {
    s.run(initialize_all());
    auto feed = [&](const any_tensor& t, const dims& shape, std::uint64_t number) {
      return detail::array_feed(t.handle(), values_for(t, shape, number));
    };
    for (std::uint64_t step = 1; step <= 3; ++step)
      s.run(train_,
            std::vector<feed_value>{feed(x_, extents, step), feed(y_, extents, step + 10),
                                    feed(column_, testing::one_for_each_row(extents), step + 20)});
    outputs all;
    for (const auto& v : variables_) all.push_back(s.run(v.read()));
    return all;
  }

  /// Whether small gradients make small steps, so that rounding stays small.
  static bool is_steady(std::uint64_t seed) { return seed % 5 < 2; }

 private:
  static std::unique_ptr<optimizer> optimizer_of(std::uint64_t seed, double rate) {
    switch (seed % 5) {
      case 0:
        return std::make_unique<sgd>(rate);
      case 1:
        return std::make_unique<momentum>(rate, 0.9);
      case 2:
        return std::make_unique<adagrad>(rate);
      case 3:
        return std::make_unique<rmsprop>(rate);
      default:
        return std::make_unique<adam>(rate);
    }
  }

  any_tensor x_, y_, column_;
  std::vector<any_variable> variables_;
  operation train_;
};

outputs train(std::uint64_t seed, const setting& of, dtype t, bool fuse) {
  graph own;
  auto in = as_default(own);
  const model m(seed, of, t, 0.01);
  session s({.fuse = fuse, .intra_op_threads = of.threads});
  return m.trained(s, of.extents);
}

}  // namespace

TEST_CASE("random programs over many elements have the same bits fused and unfused") {
  for (std::uint64_t seed = 1, end = programs(1000); seed <= end; ++seed)
    check(seed, types[seed % std::size(types)], false, 1e-3);
}

TEST_CASE("first and second gradients of random programs have the same bits fused and unfused") {
  for (std::uint64_t seed = 1, end = programs(600); seed <= end; ++seed)
    check(seed, seed % 4 ? dtype::float32 : dtype::float64, true, 1e-2);
}

TEST_CASE("random models train to the same bits fused and unfused") {
  for (std::uint64_t seed = 1, end = programs(800); seed <= end; ++seed) {
    const setting of(seed, 100'000);
    CAPTURE(seed);
    CAPTURE(str(of.kind.shape, " on ", of.threads));
    const outputs fused = train(seed, of, dtype::float32, true);
    CHECK(difference(fused, train(seed, of, dtype::float32, false)) == "");
    if (of.kind.smooth && model::is_steady(seed))
      CHECK(distance(fused, train(seed, of, dtype::float64, false)) < 1e-4);
  }
}
