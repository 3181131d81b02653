// SPDX-License-Identifier: Apache-2.0
// Reductions of expressions over operands that are all broadcast: what the plan makes of them, and
// their values.
#include <deft/graph/node_text.hpp>
#include <deft/op/expand_dims.hpp>
#include <deft/op/gradients.hpp>
#include <deft/op/max.hpp>
#include <deft/op/mean.hpp>
#include <deft/op/min.hpp>
#include <deft/op/placeholder.hpp>
#include <deft/op/plan/fused_fold.hpp>
#include <deft/op/sum.hpp>
#include <deft/plan/fuse_folds.hpp>
#include <deft/plan/thresholds.hpp>
#include <deft/session/session.hpp>

#include "fusing.hpp"
#include "outputs.hpp"
#include "testing.hpp"

using namespace deft;
using namespace deft::ext;
using namespace testing;

namespace {

/// The plan after both passes.
flat_graph both_fused(flat_graph f, const plan::can_run_test& can_run = {}) {
  f = fused(std::move(f));
  plan::fuse_folds(f.graph, f.fetches, can_run);
  validate(f.graph);
  return f;
}
std::ptrdiff_t folds_in(const flat_graph& f) {
  return std::ranges::count(ops_of(f.graph), "fused_fold");
}

any_tensor reduced(int kind, const any_tensor& x, const axes& a, bool keep) {
  const auto by = [&](auto f) { return keep ? f(x, a, keepdims) : f(x, a); };
  switch (kind) {
    case 0:
      return by([](const auto&... given) { return sum(given...); });
    case 1:
      return by([](const auto&... given) { return mean(given...); });
    case 2:
      return by([](const auto&... given) { return max(given...); });
    default:
      return by([](const auto&... given) { return min(given...); });
  }
}

outputs run(const std::vector<dims>& shapes, bool known, dtype t, bool fuse, int threads,
            const std::function<any_tensor(const any_tensor&, const any_tensor&)>& f) {
  graph own;
  const auto in_own = as_default(own);
  std::vector<any_tensor> x;
  std::vector<feed_value> feeds;
  for (const dims& shape : shapes) {
    dims seen = shape;
    if (!known)
      for (auto& e : seen)
        if (e != 1) e = dyn;
    x.push_back(make_placeholder("x", t, seen));
    feeds.push_back(
        deft::detail::array_feed(x.back().handle(), values_for(x.back(), shape, x.size())));
  }
  session s({.fuse = fuse, .intra_op_threads = threads});
  return s.run(std::vector<any_tensor>{f(x[0], x[1])}, feeds);
}
/// The same bits in one pass and in two, on one thread and on three.
void check(const dims& a, const dims& b, const axes& over) {
  CAPTURE(str(a, " ", b));
  for (const dtype t : {dtype::float32, dtype::float64, dtype::int32})
    for (const bool known : {true, false})
      for (const int kind : {0, 1, 2, 3}) {
        if (kind == 1 && t == dtype::int32) continue;
        CAPTURE(str(t, " ", kind, known ? "" : " unknown"));
        const auto f = [&](const any_tensor& x, const any_tensor& y) {
          return reduced(kind, x * y - x, over, known);
        };
        const outputs apart = run({a, b}, known, t, false, 1, f);
        CHECK(difference(apart, run({a, b}, known, t, true, 1, f)) == "");
        CHECK(difference(apart, run({a, b}, known, t, true, 3, f)) == "");
      }
}

}  // namespace

TEST_CASE("a reduction takes in what only it needs, where every operand is broadcast") {
  own_graph own;
  placeholder<float, 2, 3, 40, 16> q("q"), k("k");
  const auto product = expand_dims(q, axis<3>) * expand_dims(k, axis<2>);
  const flat_graph f = both_fused(flat({sum(product, axis<4>)}));
  REQUIRE(folds_in(f) == 1);
  CHECK(std::ranges::count(ops_of(f.graph), "mul") == 0);
  const auto made = decode<op::fused_fold>(first(f.graph, "fused_fold").attributes);
  CHECK(made.reduction == "sum");
  CHECK(made.axes == dims{4});
  CHECK(first(f.graph, "fused_fold").outputs[0].shape == dims{2, 3, 40, 40});
  CHECK(expression_text(f.graph, first(f.graph, "fused_fold")) == "sum(reshape * reshape_1)");

  // Of an expression with a literal, and over axes in the middle.
  CHECK(folds_in(both_fused(flat({max(product * 2.f, axis<3>, keepdims)}))) == 1);
  CHECK(folds_in(both_fused(flat({mean(product, axis<2, 4>)}))) == 1);
}

TEST_CASE("a reduction does not take in what others need, or what gains nothing") {
  own_graph own;
  placeholder<float, 2, 3, 40, 16> q("q"), k("k");
  const any_tensor product = expand_dims(q, axis<3>) * expand_dims(k, axis<2>);
  const any_tensor scores = sum(product, axes{4});
  CHECK(folds_in(both_fused(flat({scores, product}))) == 0);
  CHECK(folds_in(both_fused(flat({scores}), [](placement, const op_def& made, dtype) {
          return &made != &record_of<op::fused_fold>;
        })) == 0);
  // All of it would have to be there, or is already, or is small.
  CHECK(folds_in(both_fused(flat({sum(product, axes{0, 4})}))) == 0);
  placeholder<float, 2, 3, 40, 40, 16> whole("whole");
  CHECK(folds_in(both_fused(flat({sum(product * whole, axes{3})}))) == 0);
  placeholder<float, 2, 1, 3> a("a");
  placeholder<float, 2, 3, 1> b("b");
  CHECK(folds_in(both_fused(flat({sum(a * b, axes{1})}))) == 0);
}

TEST_CASE("reductions of broadcast operands have the bits of two passes") {
  check({2, 3, 17, 1, 16}, {2, 3, 1, 19, 16}, {4});
  check({2, 3, 17, 1, 16}, {2, 3, 1, 19, 16}, {3});
  check({2, 3, 17, 1, 16}, {2, 3, 1, 19, 16}, {1, 4});
  check({2, 3, 17, 19, 1}, {2, 3, 1, 19, 16}, {3});
  check({2, 30, 1, 7}, {2, 1, 40, 7}, {2, 3});
  check({5, 1, 900}, {5, 70, 1}, {1});
  check({3, 1, 40'000}, {1, 3, 1}, {2});
}

TEST_CASE("units as large, and as many, as are reduced at once") {
  for (const std::int64_t size : {thresholds::folded_unit, thresholds::folded_unit / 2})
    for (const std::int64_t n : {size / 16 - 1, size / 16, size / 16 + 1}) {
      check({3, 1, n}, {3, 16, 1}, {1, 2});
      check({n, 1, 5}, {1, 3, 5}, {2});
    }
}

TEST_CASE("derivatives of a reduction of broadcast operands have the bits of two passes") {
  const auto f = [](const any_tensor& q, const any_tensor& k) {
    const any_tensor scores = sum(expand_dims(q, axes{3}) * expand_dims(k, axes{2}), axes{4});
    return gradients(mean(scores * scores), {q, k})[1];
  };
  const std::vector<dims> shapes(2, dims{2, 2, 20, 16});
  const outputs apart = run(shapes, true, dtype::float32, false, 1, f);
  CHECK(difference(apart, run(shapes, true, dtype::float32, true, 3, f)) == "");
}

TEST_CASE("a literal of a fused reduction may be another one in each run") {
  own_graph own;
  placeholder<float, 20, 1, 16> a("a");
  placeholder<float, 1, 30, 16> b("b");
  const ndarray<float, 20, 1, 16> x(values_for(any_tensor(a), {20, 1, 16}, 1));
  const ndarray<float, 1, 30, 16> y(values_for(any_tensor(b), {1, 30, 16}, 2));
  session fuses, apart({.fuse = false});
  for (const float k : {2.f, 3.f, -1.f}) {
    const auto scores = sum(a * b * k, axis<2>);
    const ndarray<float, 20, 30> expected = apart.run(scores, a = x, b = y);
    CHECK(fuses.run(scores, a = x, b = y) == expected);
  }
}

TEST_CASE("a fused reduction of something that is none is refused") {
  const tensor_type in[] = {{{2, 1, 3}, dtype::float32}};
  program_builder p;
  const program_builder::value x[] = {p.input(dtype::float32)};
  p.apply(record_of<op::neg>, dtype::float32, x);
  const program_ref made = p.finish();
  CHECK(op::fused_fold{made, "sum", {1}, false, {}}.infer(in) ==
        std::vector<tensor_type>{{{2, 3}, dtype::float32}});
  CHECK(error_of([&] {
          op::fused_fold{made, "neg", {1}, false, {}}.infer(in);
        }) == "invalid_argument: [fused_fold] expects a reduction, and got \"neg\"");
  CHECK(error_of([&] {
          op::fused_fold{made, "sum", {}, false, {}}.infer(in);
        }) == "invalid_argument: [fused_fold] expects axes to reduce, and got none");
}
