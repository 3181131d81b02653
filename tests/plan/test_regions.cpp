// SPDX-License-Identifier: Apache-2.0
// Random graphs of maps and reductions: the same bits fused, unfused and cut, close to the same
// computed in double.
#include <deft/op/gradients.hpp>
#include <deft/plan/fuse.hpp>
#include <deft/session/launch/local_cluster.hpp>
#include <deft/session/session.hpp>

#include "devices.hpp"
#include "planning.hpp"
#include "random_graphs.hpp"

using namespace deft;
using namespace deft::ext;
using testing::difference;
using testing::distance;
using testing::kind_of_graph;
using testing::make_graph;
using testing::outputs;
using testing::own_graph;
using testing::random_graph;
using testing::run;
using testing::values_for;

namespace {

constexpr dtype types[] = {dtype::float32, dtype::float64, dtype::int32,
                           dtype::int64,   dtype::uint8,   dtype::float32};

struct fused_nodes {
  int folds = 0, rows = 0, columns = 0, several = 0;

  void count(const random_graph& g) {
    std::vector<output> fetches;
    for (const auto& f : g.fetches) fetches.push_back(f.handle());
    flat_graph flat = flatten(fetches, {});
    for (auto& n : flat.graph.nodes)
      n.device = testing::device_at("/job:localhost/replica:0/task:0/cpu:0");
    plan::fuse(flat.graph, flat.fetches);
    for (const auto& n : flat.graph.nodes)
      if (const program* p = program_in(n.attributes)) {
        folds += std::ranges::any_of(p->code, &instruction::is_fold);
        rows += p->row_axes > 0;
        columns += std::ranges::any_of(
            p->code, [](const instruction& c) { return c.leaves == extent_class::column; });
        several += p->outputs.size() > 1;
      }
  }
};

}  // namespace

TEST_CASE("random regions have the same bits fused and unfused, and are close to double") {
  fused_nodes found;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    const std::int64_t columns[] = {10, 64, 130, 1000};
    const std::int64_t n = columns[seed % 4],
                       rows = static_cast<std::int64_t>(seed * 7 % (seed % 5 ? 97 : 997) + 2);
    const dims extents{rows, n};
    kind_of_graph kind{seed % 3 == 0 ? extents : dims{dyn, n}};
    const dtype t = types[seed % std::size(types)];
    graph own;
    auto in = as_default(own);
    const random_graph g = make_graph(seed, t, kind);
    found.count(g);
    session with({.intra_op_threads = 1}), without({.fuse = false, .intra_op_threads = 1});
    const outputs fused = run(with, g, extents);
    CHECK(difference(fused, run(without, g, extents)) == "");
    if (t != dtype::float32) continue;
    const random_graph exact = make_graph(seed, dtype::float64, kind);
    CHECK(distance(fused, run(without, exact, extents)) < 1e-4);
  }
  // The graphs contain enough of every kind of region.
  CHECK(found.folds > 1000);
  CHECK(found.rows > 400);
  CHECK(found.columns > 300);
  CHECK(found.several > 500);
}

TEST_CASE("random regions may have higher rank, few rows, or none") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    graph own;
    auto in = as_default(own);
    const dims shape = seed % 2 ? dims{dyn, 3, 50} : dims{7, 40, 50};
    const random_graph g = make_graph(seed, dtype::float32, {shape});
    session with, without({.fuse = false});
    for (std::int64_t rows : {0, 1, 5}) {
      if (seed % 2 == 0) rows = 7;
      const dims extents{rows, shape[1], shape[2]};
      outputs one, two;
      const auto fault = testing::error_of([&] { one = run(with, g, extents); });
      CHECK(fault == testing::error_of([&] { two = run(without, g, extents); }));
      if (fault.empty()) CHECK(difference(one, two) == "");
    }
  }
}

namespace {
/// A loss of rectified, normalised and scaled rows, and its gradients.
struct normalised {
  any_tensor x, gain, shift, loss;
  std::vector<any_tensor> gradients;

  normalised(dtype t, const dims& extents)
      : x(make_placeholder("x", t, extents)),
        gain(make_placeholder("gain", t, {extents[1]})),
        shift(make_placeholder("shift", t, {extents[1]})) {
    const any_tensor h = maximum(x, x * 0.1f), d = h - mean(h, axis<1>, keepdims);
    const any_tensor y = d / sqrt(mean(square(d), axis<1>, keepdims) + 0.01f) * gain + shift;
    loss = sum(square(tanh(y)));
    auto [dx, dg, ds] = deft::gradients(loss, x, gain, shift);
    gradients = {dx, dg, ds};
  }
  outputs run(session& s, const any_array& of_x, const any_array& of_gain,
              const any_array& of_shift) const {
    const auto r = s.run(
        loss, gradients[0], gradients[1], gradients[2], detail::array_feed(x.handle(), of_x),
        detail::array_feed(gain.handle(), of_gain), detail::array_feed(shift.handle(), of_shift));
    return std::apply([](const auto&... a) { return outputs{any_array(a)...}; }, r);
  }
};
}  // namespace

TEST_CASE("gradients through regions of rows and columns agree with central differences") {
  for (const dims& extents : {dims{100, 64}, dims{dyn, 64}, dims{7, 5}}) {
    graph own;
    auto in = as_default(own);
    const normalised exact(dtype::float64, extents), rounded(dtype::float32, extents);
    const dims rows{extents[0] == dyn ? 90 : extents[0], extents[1]}, row{extents[1]};
    session fused, apart({.fuse = false});
    auto arrays = [&](const normalised& n) {
      return std::array{values_for(n.x, rows, 1), values_for(n.gain, row, 2),
                        values_for(n.shift, row, 3)};
    };
    const auto floats = arrays(rounded);
    const outputs single = rounded.run(fused, floats[0], floats[1], floats[2]);
    CHECK(difference(single, rounded.run(apart, floats[0], floats[1], floats[2])) == "");
    auto at = arrays(exact);
    const outputs all = exact.run(fused, at[0], at[1], at[2]);
    CHECK(difference(all, exact.run(apart, at[0], at[1], at[2])) == "");
    CHECK(distance(single, all) < 1e-4);
    constexpr double step = 1e-5;
    for (std::size_t a = 0; a < 3; ++a)
      for (std::int64_t i : {std::int64_t{0}, at[a].elements() / 2, at[a].elements() - 1}) {
        auto loss_at = [&](double by) {
          auto moved = at;
          moved[a].mutable_data<double>()[i] += by;
          return *exact.run(fused, moved[0], moved[1], moved[2])[0].data<double>();
        };
        const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
        CHECK(all[a + 1].data<double>()[i] == doctest::Approx(slope).epsilon(1e-5));
      }
  }
}

TEST_CASE_FIXTURE(own_graph, "a region accepts operands without leading extents of 1") {
  placeholder<float, 1, 64, 64> x("x");
  placeholder<float, 64, 64> y("y");
  any_tensor rows = sum(any_tensor(x) * any_tensor(y), axes{2}),
             columns = max(any_tensor(x) - any_tensor(y), axes{0, 1});
  const any_array a = values_for(any_tensor(x), {1, 64, 64}, 1),
                  b = values_for(any_tensor(y), {64, 64}, 2);
  outputs results[2];
  for (bool fuse : {false, true}) {
    session s({.fuse = fuse});
    const auto [r, c] = s.run(rows, columns, detail::array_feed(any_tensor(x).handle(), a),
                              detail::array_feed(any_tensor(y).handle(), b));
    results[fuse] = {any_array(r), any_array(c)};
  }
  CHECK(difference(results[0], results[1]) == "");
}

TEST_CASE_FIXTURE(own_graph, "a broadcast to other extents is refused, fused or not") {
  placeholder<float, 2> y("y");
  placeholder<float, 1> v("v");
  placeholder<float, dyn> like("like");
  any_tensor z = any_tensor(y) - broadcast_to(any_tensor(v), any_tensor(like));
  for (bool fuse : {false, true}) {
    session s({.fuse = fuse});
    CHECK(testing::error_of([&] {
            s.run(z, y = {1, 2}, v = {1}, like = {1, 2, 3, 4, 5});
          }).find("cannot be broadcast together: (2) (5)") != std::string::npos);
  }
}

TEST_CASE("random regions have the same bits on one thread, on two, and cut over two devices") {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    CAPTURE(seed);
    graph own;
    auto in = as_default(own);
    const std::int64_t n = seed % 3 ? 257 : 13;
    const dims extents{150'000 / n, n};
    const dtype t = types[seed % std::size(types)];
    const random_graph g = make_graph(seed, t, {{dyn, n}});
    session one({.intra_op_threads = 1});
    const outputs expected = run(one, g, extents);
    session two({.intra_op_threads = 2, .cpu_devices = 2});
    const random_graph cut = make_graph(seed, t, {{dyn, n}, testing::usual_devices(two)});
    CHECK(difference(expected, run(two, g, extents)) == "");
    CHECK(difference(expected, run(two, cut, extents)) == "");
  }
}

TEST_CASE("random regions have the same bits cut over two tasks") {
  local_cluster c{{"worker", 2}};
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    graph own;
    auto in = as_default(own);
    const dims extents{300, 65};
    const dtype t = types[seed % std::size(types)];
    const random_graph g = make_graph(seed, t, {{dyn, 65}});
    const random_graph cut =
        make_graph(seed, t, {{dyn, 65}, {"/job:worker/task:0", "/job:worker/task:1"}});
    session local, remote(c.target("worker", 0));
    CHECK(difference(run(local, g, extents), run(remote, cut, extents)) == "");
  }
}
