// SPDX-License-Identifier: Apache-2.0
// tests/plan/random_graphs.hpp: random graphs of maps and reductions.
#pragma once
#include <deft/core/philox.hpp>
#include <deft/session/session.hpp>
#include <limits>

#include "outputs.hpp"

namespace testing {

/// What a random graph is made of; the same seed gives the same operations for every dtype.
struct kind_of_graph {
  dims shape;  ///< of x and y; the first extent may be dyn
  std::vector<std::string> devices{""};
  bool smooth = false;  ///< whether all derivatives of floats are continuous
  /// Whether values pass through operations that are not fused on their way, and all that is
  /// fetched has done so: a step then keeps operands and results of regions in memory of its own.
  bool apart = false;
};

struct graph_inputs {
  any_tensor x, y, row, column, scalar;
};
struct random_graph : graph_inputs {
  std::vector<any_tensor> fetches;  ///< five; the fourth is of rank 0
};

/// A copy of `a`, or a row-wise distribution, by operations that are not fused.
inline any_tensor copy_apart(const any_tensor& a, bool softened) {
  return softened ? softmax(a) : transpose(transpose(a));
}

/// The extents of what has one element for each row of `s`.
inline dims one_for_each_row(dims s) {
  s.e[s.rank() - 1] = 1;
  return s;
}

/// Operations keep values at about unit size.
inline random_graph make_graph(std::uint64_t seed, const graph_inputs& inputs,
                               const kind_of_graph& kind) {
  philox_stream random(seed), places(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random.below(n)); };
  random_graph g{inputs, {}};
  const bool floating = is_floating(g.x.handle().type().type), smooth = floating && kind.smooth;
  auto apart = [&](const any_tensor& a) {
    return kind.apart ? copy_apart(a, floating && pick(8) == 0) : a;
  };
  std::vector<any_tensor> elements{apart(g.x), apart(g.y)}, rows{g.column};
  auto operand = [&](const std::vector<any_tensor>& of) { return of[pick(of.size())]; };
  auto map = [&](const any_tensor& a, const any_tensor& b) -> any_tensor {
    constexpr std::size_t derivable[] = {0, 1, 6, 7, 8, 9, 10, 11};
    switch (smooth ? derivable[pick(8)] : pick(floating ? 12 : 6)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return maximum(a, b);
      case 3:
        return minimum(b, a * b);
      case 4:
        return where(a < b, b - a, a);
      case 5:
        return relu(a) * 2 - b;
      case 6:
        return tanh(a * b);
      case 7:
        return sigmoid(a) - b;
      case 8:
        return exp(-square(tanh(a))) + b;
      case 9:
        return a / (square(b) + 1);
      case 10:
        return sqrt(square(a) + 0.25) - b;
      default:
        return log(square(a) + 1) * 0.5 + b;
    }
  };
  const bool least = seed % 2 == 1;
  auto extreme = [&](const auto&... of) { return least ? min(of...) : max(of...); };
  auto fold = [&](const any_tensor& a, bool all) -> any_tensor {
    const std::size_t how = smooth ? 1 + pick(2) : pick(floating ? 3 : 2);
    const axes over{-1};
    if (all) return how == 0 ? extreme(a) : how == 1 ? sum(a) : mean(a);
    return how == 0   ? extreme(a, over, keepdims)
           : how == 1 ? expand_dims(sum(a, over), over)
                      : mean(a, over, keepdims);
  };
  for (std::size_t n = 3 + pick(14); n-- > 0;) {
    auto there = on(device(kind.devices[places.below(kind.devices.size())]));
    const std::size_t what = pick(kind.apart ? 14 : 12);
    if (what > 11) {
      elements.push_back(apart(operand(elements)));
    } else if (what < 2) {
      rows.push_back(fold(operand(elements), false));
    } else if (what == 2 && floating) {
      rows.push_back(map(operand(rows), operand(rows)));
    } else {
      const any_tensor a = operand(elements);
      const std::size_t other = pick(8);
      const any_tensor b = other < 4   ? operand(elements)
                           : other < 6 ? operand(rows)
                           : other < 7 ? g.row
                                       : g.scalar;
      elements.push_back(other % 2               ? map(a, b)
                         : floating && other > 3 ? tanh(map(b, a))
                                                 : map(b, a));
    }
  }
  // The fourth fetch needs all feeds. One of the last two folds columns.
  g.fetches = {apart(elements.back()), apart(operand(elements)), rows.back(),
               fold(map(elements.back(), g.x - g.y + g.row * g.scalar + g.column), true)};
  const any_tensor folded = map(operand(elements), operand(elements));
  const std::size_t how = smooth ? 1 + pick(4) : pick(floating ? 5 : 4);
  g.fetches.push_back(how == 0   ? extreme(folded, axes{0})
                      : how == 1 ? sum(folded, axes{0})
                      : how == 2 ? sum(operand(elements), axes{0}, keepdims)
                      : how == 3 ? fold(operand(elements), true)
                                 : mean(folded, axes{0}));
  return g;
}
/// The same of placeholders.
inline random_graph make_graph(std::uint64_t seed, dtype t, const kind_of_graph& kind) {
  const dims &s = kind.shape, row{s[s.rank() - 1]};
  return make_graph(
      seed,
      {make_placeholder("x", t, s), make_placeholder("y", t, s), make_placeholder("row", t, row),
       make_placeholder("column", t, one_for_each_row(s)), make_placeholder("scalar", t, {})},
      kind);
}

/// Feeds of all placeholders, where x and y have these extents.
inline std::vector<feed_value> feeds_of(const graph_inputs& g, const dims& shape) {
  std::uint64_t seed = 17;
  auto feed = [&](const any_tensor& t, const dims& d) {
    return detail::array_feed(t.handle(), values_for(t, d, seed++));
  };
  return {feed(g.x, shape), feed(g.y, shape), feed(g.row, {shape[shape.rank() - 1]}),
          feed(g.column, one_for_each_row(shape)), feed(g.scalar, {})};
}

inline outputs run(session& s, const random_graph& g, const dims& shape) {
  return s.run(g.fetches, feeds_of(g, shape));
}

/// The distance of floats from the same values in double, relative to the largest value; infinity
/// where only one of two values is NaN.
inline double distance(const outputs& a, const outputs& b) {
  double worst = 0;
  for (std::size_t o = 0; o < a.size(); ++o) {
    double largest = 1, difference = 0;
    for (std::int64_t i = 0; i < a[o].elements(); ++i) {
      const double x = static_cast<double>(a[o].data<float>()[i]), y = b[o].data<double>()[i];
      if (x != x || y != y) {
        if (x == x || y == y) return std::numeric_limits<double>::infinity();
        continue;
      }
      largest = std::max(largest, std::abs(y));
      difference = std::max(difference, std::abs(x - y));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

}  // namespace testing
