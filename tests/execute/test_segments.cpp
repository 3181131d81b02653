// SPDX-License-Identifier: Apache-2.0
// Kernels that are launched together, and their graphs: on simulated GPUs, whose graphs hold the
// addresses and the numbers that their launches were captured with.
#include <atomic>
#include <deft/kernels/gpu/simulated/queue.hpp>
#include <thread>

#include "../session/sessions.hpp"

using namespace deft;
using namespace deft::ext;
using gpu::simulated::simulated_gpus;
using testing::outcome_of;
using testing::own_graph;

namespace {

struct on_gpu : own_graph {
  decltype(on(device(""))) scope = on(device("/gpu:0"));
  on_gpu() { simulated_gpus().reset_counts(); }
  ~on_gpu() { simulated_gpus().longest_us = 0; }
};

/// x * 8, by kernels that fuse with nothing.
template <class X>
tensor<float, dyn, 2> eightfold(const X& x) {
  const auto twice = constant<float, 2, 2>({{2, 0}, {0, 2}});
  return matmul(matmul(matmul(x, twice), twice), twice);
}

}  // namespace

TEST_CASE_FIXTURE(on_gpu,
                  "launches are captured in the second run, and started as a graph from then on") {
  placeholder<float, 3, 2> x("x");
  session s({.simulated_gpus = 1});
  auto run = s.prepare(eightfold(x), feeds(x));
  std::size_t launches = 0;
  for (int i = 1; i < 6; ++i) {
    CAPTURE(i);
    const auto f = static_cast<float>(i);
    simulated_gpus().launches = 0;
    const ndarray<float, dyn, 2> y = run(ndarray<float, 3, 2>{f, 1.f, 2.f, f, 0.f, 3.f});
    CHECK(y == ndarray<float, dyn, 2>{8 * f, 8.f, 16.f, 8 * f, 0.f, 24.f});
    CHECK(simulated_gpus().captures == (i > 1));
    CHECK(simulated_gpus().replays == static_cast<std::size_t>(i - 1));
    if (i == 1) launches = simulated_gpus().launches;
    CHECK(simulated_gpus().launches == launches);
  }
}

TEST_CASE_FIXTURE(on_gpu, "other extents need other launches") {
  placeholder<float, dyn, 2> x("x");
  session s({.simulated_gpus = 1});
  auto run = s.prepare(eightfold(x), feeds(x));
  for (int rows : {3, 3, 3, 700, 700, 700, 2, 3, 2, 3, 0, 0, 0, 700, 700}) {
    CAPTURE(rows);
    ndarray<float, dyn, 2> fed(rows);
    for (int r = 0; r < rows; ++r) fed(r, 0) = static_cast<float>(r), fed(r, 1) = 1;
    const ndarray<float, dyn, 2> y = run(fed);
    REQUIRE(y.extents() == fed.extents());
    for (int r = 0; r < rows; ++r) {
      REQUIRE(y(r, 0) == static_cast<float>(8 * r));
      REQUIRE(y(r, 1) == 8);
    }
  }
  CHECK(simulated_gpus().replays > 0);
}

TEST_CASE_FIXTURE(on_gpu, "variables with other elements, or more of them, are read again") {
  variable<float, dyn, 2> v("v", ndarray<float, dyn, 2>{1, 2});
  placeholder<float, dyn, 2> x("x");
  operation assigned = v.assign(x);
  session s({.simulated_gpus = 1});
  s.run(initialize_all());
  auto run = s.prepare(eightfold(v));
  for (int i = 0; i < 12; ++i) {
    const auto f = static_cast<float>(i);
    ndarray<float, dyn, 2> value(1 + i / 6);
    for (float& e : value) e = f;
    s.run(assigned, x = value);
    for (int again = 0; again < 3; ++again) {
      const ndarray<float, dyn, 2> y = run();
      REQUIRE(y.extents() == value.extents());
      for (float e : y) REQUIRE(e == 8 * f);
    }
  }
  CHECK(simulated_gpus().replays > 0);
}

TEST_CASE_FIXTURE(on_gpu, "variables that have another address after a reset are read there") {
  variable<float, 3, 2> v("v", ones()), w("w", ones());
  placeholder<float, 3, 2> x("x");
  operation v_assigned = v.assign(x), w_assigned = w.assign(x);
  session s({.simulated_gpus = 1});
  auto filled = [](float value) {
    ndarray<float, 3, 2> a;
    for (float& e : a) e = value;
    return a;
  };
  auto run = s.prepare(eightfold(v));
  s.run(v_assigned, x = filled(1));
  for (int i = 0; i < 3; ++i) run();
  const std::size_t replays = simulated_gpus().replays;
  REQUIRE(replays > 0);
  s.reset();
  s.run(w_assigned, x = filled(2));  // takes the memory of v
  s.run(v_assigned, x = filled(3));
  const ndarray<float, dyn, 2> y = run();
  for (float e : y) CHECK(e == 24);
  CHECK(simulated_gpus().replays == replays);
}

TEST_CASE_FIXTURE(on_gpu,
                  "random numbers, folds in parts and scattered sums are as without a graph") {
  set_seed(3);
  auto noise = random_uniform(shape<2, 40'000>);
  auto scaled = eightfold(reshape(sum(noise, axis<1>), shape<1, 2>));
  auto rows = gather(reshape(noise, shape<20'000, 4>), constant<std::int64_t, 3>({5, 7, 5}));
  auto [back] = gradients(sum(square(rows)), noise);
  session s({.simulated_gpus = 1, .stream = 0});
  auto run = s.prepare(scaled, back);
  for (std::uint64_t i = 0; i < 5; ++i) {
    const auto [a, b] = run();
    session once({.simulated_gpus = 1, .stream = 0, .first_step = i});
    const auto [c, d] = once.run(scaled, back);
    REQUIRE(a == c);
    REQUIRE(b == d);
  }
  CHECK(simulated_gpus().replays > 0);
}

TEST_CASE_FIXTURE(on_gpu, "a run reads one value of a variable while other runs change it") {
  variable<float, 50, 2> v("v", ones());
  operation changed = v.assign_add(eightfold(v * 0.f) + 1.f);
  auto one = eightfold(v);
  auto other = v * 8.f;
  session s({.simulated_gpus = 1});
  s.run(initialize_all());
  simulated_gpus().longest_us = 20;
  constexpr int times = 40;
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t)
    writers.emplace_back([&] {
      auto run = s.prepare(changed);
      for (int i = 0; i < times; ++i) run();
    });
  auto run = s.prepare(one, other);
  bool same = true;
  for (int i = 0; i < times; ++i) {
    const auto [a, b] = run();
    for (int r = 0; r < 50; ++r)
      for (int c = 0; c < 2; ++c) same = same && a(r, c) == b(r, c) && a(r, c) == a(0, 0);
  }
  CHECK(same);
  for (auto& w : writers) w.join();
  for (float e : s.run(v)) CHECK(e == 1 + 2 * times);
  CHECK(simulated_gpus().replays > 0);
}

TEST_CASE_FIXTURE(on_gpu, "an error in a run from a graph names its node, and changes nothing") {
  placeholder<std::int64_t, 2> at("at");
  variable<float, 4, 2> table("table", ones());
  variable<float, 2, 2> count("count", zeros());
  auto rows = gather(table, at);
  const unsigned line = __LINE__ - 1;
  operation changed = count.assign_add(eightfold(rows) * 0.f + 1.f);
  session s({.simulated_gpus = 1});
  s.run(initialize_all());
  auto run = s.prepare(changed, feeds(at));
  float done = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i, ++done) run(ndarray<std::int64_t, 2>{1, 3});
    auto o = outcome_of([&] { run(ndarray<std::int64_t, 2>{1, 4}); });
    CHECK(o.code == errc::out_of_range);
    CHECK(o.node == "gather");
    CHECK(o.line == line);
    for (float e : s.run(count)) CHECK(e == done);
  }
  CHECK(simulated_gpus().replays > 0);
}
