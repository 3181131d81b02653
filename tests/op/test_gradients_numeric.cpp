// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <deft/expr.hpp>
#include <deft/op/gradients.hpp>
#include <deft/session/session.hpp>
#include <functional>
#include <map>

#include "modeling.hpp"

using namespace deft;
using namespace deft::ext;
using testing::own_graph;

namespace {

using tensors = std::vector<any_tensor>;
using arrays = std::vector<any_array>;

any_array filled(const dims& shape, double first, double step) {
  any_array a(dtype::float64, shape);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    a.mutable_data<double>()[i] = first + step * static_cast<double>((i * 7) % 11);
  return a;
}

/// One way to call an operation: its differentiable inputs, and the expression.
struct gradient_case {
  std::vector<dims> shapes;
  std::function<any_tensor(const tensors&)> write;
  double first = 0.3, step = 0.37;
  bool dynamic = true;  ///< extents are `dyn` in a second round
};

/// The value of `t`; the loss is fetched too, so that every feed is needed.
any_array fetch(session& s, const any_tensor& t, const any_tensor& loss, const tensors& xs,
                const arrays& values) {
  auto run = [&](const auto&... feeds) { return std::get<0>(s.run(t, loss, feeds...)); };
  if (xs.size() == 1) return run(feed(xs[0], values[0]));
  if (xs.size() == 2) return run(feed(xs[0], values[0]), feed(xs[1], values[1]));
  return run(feed(xs[0], values[0]), feed(xs[1], values[1]), feed(xs[2], values[2]));
}
double evaluate(session& s, const any_tensor& loss, const tensors& xs, const arrays& values) {
  return *fetch(s, loss, loss, xs, values).data<double>();
}
/// Compares the gradients with central differences.
void check_case(const gradient_case& c, bool dynamic) {
  CAPTURE(dynamic);
  own_graph own;
  session s;
  tensors xs;
  arrays values;
  for (std::size_t i = 0; i < c.shapes.size(); ++i) {
    dims declared = c.shapes[i];
    if (dynamic)
      for (auto& e : declared) e = dyn;
    xs.push_back(make_placeholder("x", dtype::float64, declared));
    values.push_back(filled(c.shapes[i], c.first + 0.11 * static_cast<double>(i), c.step));
  }
  any_tensor y = c.write(xs);
  REQUIRE(y.type() == dtype::float64);
  // The weights differ, so that a misplaced gradient is detected.
  any_tensor loss = sum(y * y * 0.5 + y);
  tensors d = plan::gradients(loss, xs);
  constexpr double h = 1e-5;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    CAPTURE(i);
    REQUIRE(d[i].valid());
    any_array analytic = fetch(s, d[i], loss, xs, values);
    REQUIRE(analytic.shape() == c.shapes[i]);
    for (std::int64_t e = 0; e < analytic.elements(); ++e) {
      CAPTURE(e);
      arrays moved = values;
      moved[i] = values[i].clone();
      double& at = moved[i].mutable_data<double>()[e];
      at += h;
      double above = evaluate(s, loss, xs, moved);
      at -= 2 * h;
      double below = evaluate(s, loss, xs, moved);
      double numeric = (above - below) / (2 * h), exact = analytic.data<double>()[e];
      CHECK(std::abs(numeric - exact) <= 1e-6 * std::max({1.0, std::abs(numeric)}));
    }
  }
}

any_tensor node(const op_def& def, attr_list attributes, const tensors& in) {
  std::vector<output> inputs;
  for (const auto& t : in) inputs.push_back(t.handle());
  return detail::add_node(def, std::move(attributes), inputs, here());
}
any_tensor indices() { return any_tensor(constant({2, 0, 2})); }

using cases = std::multimap<std::string_view, gradient_case>;

const cases& all_cases() {
  static const cases table = [] {
    cases c;
    auto add = [&](std::string_view op, std::vector<dims> shapes, auto write, double first = 0.3,
                   double step = 0.37, bool dynamic = true) {
      c.emplace(op, gradient_case{std::move(shapes), write, first, step, dynamic});
    };
    auto binary = [&](std::string_view op, auto write) {
      for (auto [a, b] : {std::pair<dims, dims>{{2, 3}, {2, 3}},
                          {{2, 3}, {3}},
                          {{2, 1}, {1, 3}},
                          {{}, {2, 2}},
                          {{3, 1, 2}, {4, 1}}})
        add(op, {a, b}, write);
    };
    auto unary = [&](std::string_view op, auto write, double first = 0.3) {
      for (dims d : {dims{}, dims{5}, dims{2, 3}}) add(op, {d}, write, first);
    };
    binary("add", [](const tensors& x) { return x[0] + x[1]; });
    binary("sub", [](const tensors& x) { return x[0] - x[1]; });
    binary("mul", [](const tensors& x) { return x[0] * x[1]; });
    binary("div", [](const tensors& x) { return x[0] / x[1]; });
    binary("maximum", [](const tensors& x) { return maximum(x[0], x[1] * 1.37); });
    binary("minimum", [](const tensors& x) { return minimum(x[0], x[1] * 1.37); });
    binary("where", [](const tensors& x) { return where(x[0] > x[1] * 1.37, x[0], x[1] * 2); });
    unary("neg", [](const tensors& x) { return -x[0]; });
    unary("exp", [](const tensors& x) { return exp(x[0]); });
    unary("log", [](const tensors& x) { return log(x[0]); });
    unary(
        "tanh", [](const tensors& x) { return tanh(x[0]); }, -1.7);
    unary(
        "sigmoid", [](const tensors& x) { return sigmoid(x[0]); }, -1.7);
    unary(
        "erf", [](const tensors& x) { return erf(x[0]); }, -1.7);
    unary(
        "normal_cdf", [](const tensors& x) { return normal_cdf(x[0]); }, -1.7);
    unary(
        "gelu", [](const tensors& x) { return gelu(x[0]); }, -1.7);
    unary(
        "gelu", [](const tensors& x) { return gelu_tanh(x[0]); }, -1.7);
    unary(
        "silu", [](const tensors& x) { return silu(x[0]); }, -1.7);
    unary(
        "softplus", [](const tensors& x) { return softplus(x[0]); }, -1.7);
    binary("sigmoid_cross_entropy",
           [](const tensors& x) { return sigmoid_cross_entropy(x[0] * 4 - 7, x[1]); });
    unary(
        "relu", [](const tensors& x) { return relu(x[0]); }, -1.7);
    unary(
        "square", [](const tensors& x) { return square(x[0]); }, -1.7);
    unary("sqrt", [](const tensors& x) { return sqrt(x[0]); });
    unary(
        "abs", [](const tensors& x) { return abs(x[0]); }, -1.7);
    unary(
        "sin", [](const tensors& x) { return sin(x[0]); }, -1.7);
    unary(
        "cos", [](const tensors& x) { return cos(x[0]); }, -1.7);
    unary(
        "sign", [](const tensors& x) { return sign(x[0]) * x[0]; }, -1.7);
    unary(
        "floor", [](const tensors& x) { return floor(x[0]) * x[0]; }, -1.63);  // not near integers
    binary("pow", [](const tensors& x) { return pow(x[0] * 0.5, x[1] * 0.5); });
    unary("cast", [](const tensors& x) { return cast(x[0] * 2, dtype::float64) * x[0]; });
    add("one_hot", {dims{2, 3}},
        [](const tensors& x) { return one_hot(argmax(x[0], axes{1}), 3, x[0].type()) * x[0]; });
    add("ensure_shape", {dims{2, 3}}, [](const tensors& x) {
      return ensure_shape(x[0], dims{2, 3}) * x[0];
    });
    // Numbers that every run draws alike.
    unary("random_normal",
          [](const tensors& x) { return random_normal_like(x[0], 0.7, 0) * x[0]; });
    unary("random_uniform",
          [](const tensors& x) { return random_uniform_like(x[0], 0.7, 0.7) * x[0]; });
    unary("truncated_normal",
          [](const tensors& x) { return (truncated_normal_like(x[0], 0) + 0.7) * x[0]; });
    add("arange", {dims{5}},
        [](const tensors& x) { return any_tensor(arange<double>(size_of(x[0]))) * x[0]; });
    unary("identity", [](const tensors& x) { return identity(x[0]) * x[0]; });
    add("all_reduce", {dims{2, 3}, dims{2, 3}, dims{2, 3}}, [](const tensors& x) {
      const auto sums = all_reduce(x);
      return sums[0] * x[1] + sums[1] * sums[2];
    });
    add("all_reduce", {dims{3}, dims{3}},
        [](const tensors& x) { return all_reduce_mean(x)[1] * x[0]; });
    auto reduces = [&](std::string_view op, auto write) {
      add(op, {dims{2, 3}}, [=](const tensors& x) { return write(x[0], axes{0, 1}, false); });
      add(op, {dims{2, 3}}, [=](const tensors& x) { return write(x[0], axes{0}, false); });
      add(op, {dims{2, 3}}, [=](const tensors& x) { return write(x[0], axes{-1}, true); });
      add(op, {dims{2, 3, 2}}, [=](const tensors& x) { return write(x[0], axes{0, 2}, false); });
      add(op, {dims{}}, [=](const tensors& x) { return write(x[0], axes{}, false); });
    };
    reduces("sum", [](const any_tensor& x, const axes& a, bool keep) {
      return keep ? sum(x, a, keepdims) : sum(x, a);
    });
    reduces("mean", [](const any_tensor& x, const axes& a, bool keep) {
      return keep ? mean(x, a, keepdims) : mean(x, a);
    });
    reduces("max", [](const any_tensor& x, const axes& a, bool keep) {
      return keep ? max(x, a, keepdims) : max(x, a);
    });
    reduces("min", [](const any_tensor& x, const axes& a, bool keep) {
      return keep ? min(x, a, keepdims) : min(x, a);
    });
    reduces("prod", [](const any_tensor& x, const axes& a, bool keep) {
      return keep ? prod(x, a, keepdims) : prod(x, a);
    });
    // Of rows with a zero, and with two.
    add(
        "prod", {dims{2, 3}}, [](const tensors& x) { return prod(x[0], axes{1}); }, -1.11);
    add("prod", {dims{2, 3}}, [](const tensors& x) {
      return prod(x[0] * constant<double>({{0, 1, 1}, {0, 1, 0}}), axes{1});
    });
    for (const cumsum_options& o :
         {cumsum_options{}, cumsum_options{.reverse = true}, cumsum_options{.exclusive = true},
          cumsum_options{.exclusive = true, .reverse = true}}) {
      add("cumsum", {dims{5}}, [=](const tensors& x) { return cumsum(x[0], axes{0}, o); });
      add("cumsum", {dims{2, 3, 2}}, [=](const tensors& x) { return cumsum(x[0], axes{1}, o); });
    }
    add("sort", {dims{2, 5}}, [](const tensors& x) { return sort(x[0]); });
    add("sort", {dims{4, 2}},
        [](const tensors& x) { return sort(x[0], axes{0}, {.descending = true}); });
    add("sort", {dims{2, 5}}, [](const tensors& x) { return top_k(x[0], 2).first; });
    add("scatter", {dims{4, 2}, dims{3, 2}},
        [](const tensors& x) { return scatter(x[0], indices(), x[1]); });
    add("scatter", {dims{3}, dims{2, 2}}, [](const tensors& x) {
      return scatter(x[0], constant({{0, 1}, {1, 0}}), x[1]);
    });
    add("scatter_maximum", {dims{4, 2}, dims{3, 2}},
        [](const tensors& x) { return scatter_max(x[0], indices(), x[1]); });
    add("slice", {dims{4, 5}}, [](const tensors& x) { return slice(x[0], {1, 0}, {2, 3}); });
    add("slice", {dims{4, 5, 2}}, [](const tensors& x) {
      return slice(x[0], {0, 2, 1}, {dyn, dyn, 1}) * 2;
    });
    add("slice", {dims{5, 3}, dims{2, 3}}, [](const tensors& x) {
      return node(record_of<op::slice>, encode(op::slice{{1, 0}, {}}), x) * x[1];
    });
    // Where a run computes the first index.
    const auto first = [] { return sum(any_tensor(constant({1, 0}))); };
    add("slice", {dims{4, 5}}, [=](const tensors& x) {
      return slice(x[0], {first(), 0}, shape<2, dyn>) * 2;
    });
    add("slice", {dims{4, 5}}, [=](const tensors& x) {
      return slice(x[0], {1, first()}, {first(), 2});
    });
    // Where it computes the size alone, of which `dyn` does not mean up to the end.
    add("slice", {dims{4, 5}}, [=](const tensors& x) { return slice(x[0], {1, 0}, {first(), 2}); });
    add("slice", {dims{4, 5}},
        [=](const tensors& x) { return x[0](range(all, all, -2), range(first(), all, 3)) * 2; });
    add("slice", {dims{6, 2}}, [=](const tensors& x) { return x[0](range(-1, first(), -2), 1); });
    add("slice", {dims{2, 7}}, [](const tensors& x) { return x[0](newaxis, -1, range(1, 6, 4)); });
    add("pad", {dims{2, 3}}, [](const tensors& x) {
      return pad(x[0], {1, 2}, {0, 1}, pad_mode::reflect) +
             pad(x[0], {0, 1}, {1, 2}, pad_mode::edge);
    });
    add("concat", {dims{3, 4}},
        [=](const tensors& x) { return roll(x[0], first(), axis<1>) * flip(x[0], axis<0>); });
    add("broadcast_to", {dims{2, 3}},
        [](const tensors& x) { return repeat(x[0], axis<0>, 3) * tile(x[0], copies<3, 1>); });
    add("pad", {dims{2, 3}, dims{4, 3}}, [=](const tensors& x) {
      const detail::run_extents at("pad", "number", {first(), 0}, x[0].type(), here());
      return node(record_of<op::pad>, encode(op::pad{at.known, {}, 0.7}),
                  {x[0], x[1], at.carrier}) *
             x[1];
    });
    add("pad", {dims{2, 3}}, [](const tensors& x) { return pad(x[0], {1, 0}, {0, 2}, 0.7); });
    add("pad", {dims{3}}, [](const tensors& x) { return pad(x[0], {0}, {2}); });
    add("pad", {dims{2, 3}, dims{4, 3}}, [](const tensors& x) {
      return node(record_of<op::pad>, encode(op::pad{{1, 0}, {}, 0.7}), x) * x[1];
    });
    for (auto [from, to] : {std::pair<dims, dims>{{2, 3}, {3}},
                            {{2, 3}, {2, 1}},
                            {{4, 2, 3}, {2, 1}},
                            {{2, 3}, {}},
                            {{2}, {2}}})
      add("sum_to", {from, to}, [](const tensors& x) { return sum_to(x[0], x[1]) * x[1] + x[1]; });
    for (auto [from, to] : {std::pair<dims, dims>{{3}, {2, 3}}, {{2, 1}, {2, 3}}, {{}, {2, 2}}})
      add("broadcast_to", {from, to},
          [](const tensors& x) { return broadcast_to(x[0], x[1]) * x[1]; });
    add("reshape", {dims{2, 6}}, [](const tensors& x) { return reshape(x[0], dims{3, 4}); });
    add("reshape", {dims{2, 6}, dims{4, 3}},
        [](const tensors& x) { return reshape(x[0], x[1]) * x[1]; });
    add("transpose", {dims{2, 3}}, [](const tensors& x) { return transpose(x[0], axes{1, 0}); });
    add("transpose", {dims{2, 3, 4}}, [](const tensors& x) {
      return transpose(x[0], axes{1, 2, 0});
    });
    add("concat", {dims{2, 3}, dims{1, 3}, dims{2, 3}},
        [](const tensors& x) { return concat(axes{0}, x); });
    add("concat", {dims{2, 1}, dims{2, 3}}, [](const tensors& x) { return concat(axes{-1}, x); });
    add("concat_part", {dims{3, 2}, dims{1, 2}, dims{2, 2}}, [](const tensors& x) {
      return node(record_of<op::concat_part>, encode(op::concat_part{0, 1}), x) * x[2] + sum(x[1]);
    });
    add("gather", {dims{4, 2}}, [](const tensors& x) { return gather(x[0], indices()); });
    add("gather", {dims{3}}, [](const tensors& x) { return gather(x[0], indices()); });
    add("scatter_add", {dims{3, 2}, dims{4, 2}}, [](const tensors& x) {
      return node(record_of<op::scatter_add>, {}, {x[0], indices(), x[1]}) * x[1];
    });
    for (auto [ta, tb] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}})
      add("matmul", {ta ? dims{4, 2} : dims{2, 4}, tb ? dims{3, 4} : dims{4, 3}},
          [ta = ta, tb = tb](const tensors& x) { return matmul(x[0], x[1], ta, tb); });
    for (auto [a, b] : {std::pair<dims, dims>{{3, 2, 4}, {3, 4, 3}},
                        {{3, 2, 4}, {4, 3}},
                        {{2, 4}, {3, 4, 3}},
                        {{2, 1, 2, 4}, {3, 4, 3}},
                        {{2, 3, 2, 4}, {2, 1, 4, 3}},
                        {{1, 2, 4}, {2, 2, 4, 3}}})
      for (bool ta : {false, true})
        for (bool tb : {false, true}) {
          dims of_a = a, of_b = b;
          if (ta) std::swap(of_a[of_a.n - 2], of_a[of_a.n - 1]);
          if (tb) std::swap(of_b[of_b.n - 2], of_b[of_b.n - 1]);
          add("matmul", {of_a, of_b}, [=](const tensors& x) { return matmul(x[0], x[1], ta, tb); });
        }
    for (auto [a, b] : {std::pair<dims, dims>{{4}, {4}}, {{4}, {2, 4, 3}}, {{2, 3, 4}, {4}}})
      add("matmul", {a, b}, [](const tensors& x) { return matmul(x[0], x[1]); });
    add("matmul", {dims{4}, dims{4}}, [](const tensors& x) { return dot(x[0], x[1]) * x[0]; });
    add("matmul", {dims{4}, dims{3}}, [](const tensors& x) { return outer(x[0], x[1]); });
    const auto sums = [&](std::vector<dims> shapes, auto text) {
      add("matmul", std::move(shapes), [=](const tensors& x) {
        return x.size() == 2 ? einsum(text, x[0], x[1]) : einsum(text, x[0], x[0]);
      });
    };
    sums({dims{2, 3, 2, 2}, dims{2, 4, 2, 2}}, "bqhd,bkhd->bhqk"_es);
    sums({dims{2, 3, 4}, dims{4, 2, 3}}, "bij,jkl->ibkl"_es);
    sums({dims{2, 3, 2, 2}, dims{3, 2, 2}}, "bixj,ijk->bxk"_es);
    sums({dims{3, 4}, dims{3, 4}}, "ij,ij->i"_es);
    sums({dims{3, 4}, dims{2, 4}}, "ij,kj->"_es);
    sums({dims{3, 4}}, "ij,kj->ik"_es);
    for (std::int64_t stride : {1, 2})
      for (bool same : {false, true}) {
        op::convolution o{{stride, 1}, same};
        const dims x{2, 4, 3, 2}, filter{3, 2, 2, 3};
        dims y;
        (void)o.shape(x, filter, y);
        add("conv2d", {x, filter},
            [=](const tensors& in) { return conv2d(in[0], in[1], detail::options_of(o)); });
        // Of the third input only the shape counts.
        add("conv2d_input_gradient", {y, filter, x}, [=](const tensors& in) {
          return detail::convolve<op::conv2d_input_gradient>(o, in[0], in[1], in[2]) * in[2];
        });
        add("conv2d_filter_gradient", {y, x, filter}, [=](const tensors& in) {
          return detail::convolve<op::conv2d_filter_gradient>(o, in[0], in[1], in[2]) * in[2];
        });
        const pool_options p{{3, 2}, {stride, 1}, o.same ? padding::same : padding_mode::valid};
        add("max_pool", {x}, [=](const tensors& in) { return max_pool(in[0], p); });
        add("avg_pool", {x}, [=](const tensors& in) { return avg_pool(in[0], p); });
        dims small;
        const op::pooling windows{p.window, p.stride, same};
        (void)windows.shape(x, small);
        add("max_pool_gradient", {small, x}, [=](const tensors& in) {
          return detail::pool_gradient<op::max_pool_gradient>(windows, in[0], in[1]) * in[1];
        });
        add("max_pool_pick", {x, x}, [=](const tensors& in) {
          return detail::pool_gradient<op::max_pool_pick>(windows, in[0], in[1]) *
                 max_pool(in[1], p);
        });
        // Of the second and third order, as in a gradient penalty.
        add("max_pool", {x}, [=](const tensors& in) {
          const any_tensor y = max_pool(in[0], p);
          const any_tensor d = plan::gradients(sum(y * y * y) * 0.05, in)[0];
          return plan::gradients(sum(square(d)), in)[0];
        });
        add("avg_pool_gradient", {small, x}, [=](const tensors& in) {
          return detail::pool_gradient<op::avg_pool_gradient>(windows, in[0], in[1]) * in[1];
        });
      }
    for (dims d : {dims{4}, dims{2, 3}, dims{2, 2, 3}})
      add("softmax", {d}, [](const tensors& x) { return softmax(x[0]); });
    for (int axis : {0, 1, 2}) {
      add("softmax", {dims{2, 3, 2}}, [=](const tensors& x) { return softmax(x[0], axes{axis}); });
      add("softmax", {dims{2, 3, 2}},
          [=](const tensors& x) { return log_softmax(x[0], axes{axis}); });
    }
    add("softmax_cross_entropy", {dims{2, 3}}, [](const tensors& x) {
      return softmax_cross_entropy(x[0], any_tensor(constant({2, 0})));
    });
    add("softmax_cross_entropy", {dims{2, 3}, dims{2, 3}},
        [](const tensors& x) { return softmax_cross_entropy(x[0], x[1]); });
    add("softmax_cross_entropy", {dims{2, 3}, dims{2, 3}}, [](const tensors& x) {
      const any_tensor& y = x[1];  // rows that do not sum to 1
      return plan::gradients(sum(softmax_cross_entropy(x[0], y)), std::vector{y})[0] * y;
    });
    auto gradient = [](const any_tensor& logits, const any_tensor& labels, const any_tensor& dz) {
      return node(record_of<op::softmax_cross_entropy_grad>, {}, {logits, labels, dz});
    };
    add("softmax_cross_entropy_grad", {dims{2, 3}, dims{2}}, [=](const tensors& x) {
      return gradient(x[0], any_tensor(constant({2, 0})), x[1]);
    });
    add("softmax_cross_entropy_grad", {dims{2, 3}, dims{2, 3}, dims{2}},
        [=](const tensors& x) { return gradient(x[0], x[1], x[2]); });
    return c;
  }();
  return table;
}

/// An elementwise operation that the table does not name, on positive operands.
template <class Op>
void check_elementwise() {
  auto write = [](const tensors& x) { return node(record_of<Op>, {}, x); };
  for (dims first : {dims{}, dims{2, 3}, dims{4, 1, 3}}) {
    std::vector<dims> shapes(static_cast<std::size_t>(Op::arity), dims{2, 3});
    shapes.front() = first;
    for (bool dynamic : {false, true}) check_case({shapes, write}, dynamic);
  }
}

/// A declared stand-in for the node that grad(n, dz) takes.
template <class Op>
struct any_node {
  template <int I>
  any_tensor in() const;
  any_tensor in(std::size_t) const;
  std::size_t inputs() const;
  template <int I = 0>
  any_tensor out() const;
  Op attr() const;
};
template <class Op>
concept has_gradient = requires(const any_node<Op>& n, any_tensor dz) {
  Op::grad(n, dz);
};

}  // namespace

TEST_CASE("every gradient of the catalog agrees with central differences") {
  std::size_t differentiable = 0;
  op::catalog::each([&]<class Op>() {
    if constexpr (has_gradient<Op>) {
      CAPTURE(Op::name);
      ++differentiable;
      auto [begin, end] = all_cases().equal_range(Op::name);
      if constexpr (requires { Op::typing_rule; }) {
        if (begin == end) check_elementwise<Op>();
      } else if (Op::name != "stop_gradient") {  // it has no gradient; another case tests that
        CHECK(begin != end);
      }
      for (auto c = begin; c != end; ++c) {
        check_case(c->second, false);
        if (c->second.dynamic) check_case(c->second, true);
      }
    }
  });
  CHECK(differentiable >= 28);
}

TEST_CASE("gradients of functions of several operations agree with central differences") {
  const auto weights = [] { return constant<double>({{1, 2, 3}, {4, 5, 6}}); };
  const auto mask = [] {
    return constant({{true, false, true}, {false, false, false}, {true, true, true}});
  };
  const gradient_case functions[] = {
      {{{2, 3}}, [](const tensors& x) { return rsqrt(x[0]) + reciprocal(x[0]); }},
      {{{2, 3}}, [](const tensors& x) { return elu(x[0], 0.7) + leaky_relu(x[0], 0.2); }, -1.7},
      {{{2, 3}, {3}}, [](const tensors& x) { return clip(x[0], x[1] * 0.3, 2.5); }},
      {{{2, 3}}, [](const tensors& x) { return logsumexp(x[0]); }, -1.7},
      {{{2, 3, 2}}, [](const tensors& x) { return logsumexp(x[0], axes{1}, keepdims); }},
      {{{2, 3, 2}},
       [](const tensors& x) {
         return logsumexp(x[0], axes{0, 2});
       }},
      {{{2, 3}}, [](const tensors& x) { return variance(x[0], axes{1}); }},
      {{{2, 3}}, [](const tensors& x) { return sample_variance(x[0], axes{0}, keepdims); }},
      {{{2, 3}}, [](const tensors& x) { return standard_deviation(x[0]) + x[0]; }},
      {{{2, 3}}, [](const tensors& x) { return sample_standard_deviation(x[0], axes{-1}); }},
      {{{3, 3}}, [&](const tensors& x) { return softmax(x[0], axes{-1}, mask()); }},
      {{{3, 3}}, [&](const tensors& x) { return softmax(x[0], axes{0}, mask()); }},
      {{{2, 3}}, [](const tensors& x) { return gather(x[0], indices(), axes{1}); }},
      {{{2, 2, 3}},
       [](const tensors& x) {
         return gather(x[0], constant({{0, 1}, {1, 1}}), axes{1});
       }},
      {{{2, 3}},
       [](const tensors& x) {
         return take_along(x[0], constant({{2, 0, 0, 1}, {1, 1, 2, 2}}), axes{1});
       }},
      {{{2, 3}}, [](const tensors& x) { return take_along(x[0], argsort(x[0]), axes{1}); }},
      {{{2, 3}}, [&](const tensors& x) { return tril(x[0], 1) * weights() + triu(x[0]); }},
      {{{4, 2}, {3, 2}}, [](const tensors& x) { return scatter_add(x[0], indices(), x[1]); }},
  };
  for (const auto& c : functions) {
    CAPTURE(&c - functions);
    check_case(c, false);
    check_case(c, true);
  }
}

TEST_CASE("gradients through regions agree with central differences") {
  const axes rows{-1};
  const gradient_case regions[] = {
      {{{3, 4}, {4}, {4}},
       [&](const tensors& x) {
         const any_tensor d = x[0] - mean(x[0], rows, keepdims);
         return d / sqrt(mean(square(d), rows, keepdims) + 0.1) * x[1] + x[2];
       }},
      {{{3, 4}},
       [&](const tensors& x) {
         const any_tensor e = exp(x[0] - max(x[0], rows, keepdims));
         return e / sum(e, rows, keepdims);
       }},
      {{{5, 2}, {2}},
       [&](const tensors& x) {
         const any_tensor y = tanh(x[0] * x[1]);
         return mean(square(y - mean(y))) * sum(y, rows);
       }},
  };
  for (const auto& c : regions) {
    check_case(c, false);
    check_case(c, true);
  }
}
