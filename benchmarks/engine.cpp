// SPDX-License-Identifier: Apache-2.0
// benchmarks/engine.cpp: the cost of a node in time and memory, of parallel branches, of cached
// plans and of the order of fetches.
//
// bench_engine --resident N prints the resident bytes after N plans; each N runs in a new process.
#include <malloc.h>

#include <deft/deft.hpp>

#include "bench.hpp"
#include "program.hpp"

namespace {

using namespace deft;
using namespace deft::ext;

/// A hand-written node: a call through a pointer, with the addresses of its operands.
struct bare_node {
  void (*call)(const float* a, const float* b, float* out, int n);
  const float *a, *b;
  float* out;
};
void add_by_hand(const float* a, const float* b, float* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

/// `nodes` dependent additions, each of the previous one and the input. Neither folded nor fused.
template <std::int64_t... E>
void chain(int nodes, const std::string& work, double goal) {
  constexpr int n = static_cast<int>((E * ... * 1));
  session s({.fold = false, .fuse = false, .intra_op_threads = 1});
  placeholder<float, E...> x("x");
  tensor<float, E...> end = x;
  for (int i = 0; i < nodes; ++i) end = end + x;
  auto step = s.prepare(end, feeds(x));
  ndarray<float, E...> in;
  auto turn = bench::timed([&] { bench::keep(step(in)); });

  float input[n] = {}, other[2][n] = {};
  std::vector<bare_node> by_hand(static_cast<std::size_t>(nodes));
  for (int i = 0; i < nodes; ++i)
    by_hand[static_cast<std::size_t>(i)] = {add_by_hand, i ? other[(i + 1) % 2] : input, input,
                                            other[i % 2]};
  auto bare = bench::timed([&] {
    bench::keep(by_hand);
    for (const auto& b : by_hand) b.call(b.a, b.b, b.out, n);
    bench::keep(other);
  });
  auto o = bench::in_turns([&] { return turn() / nodes; }, [&] { return bare() / nodes; });
  bench::time_row(work + ", a node, <= " + bench::time_text(goal), o, "calls by hand",
                  bench::at_most(goal / o.yardstick));
}

std::size_t allocated() {
  const auto m = mallinfo2();
  return m.uordblks + m.hblkhd;
}

void memory_of_nodes(int nodes, const std::string& count) {
  graph g;
  auto in = as_default(g);
  session s({.fold = false, .fuse = false, .intra_op_threads = 1});
  placeholder<float> x("x");
  const std::size_t before = allocated();
  tensor<float> end = x;
  for (int i = 0; i < nodes; ++i) end = end + x;
  const std::size_t written = allocated();
  auto step = s.prepare(end, feeds(x));
  bench::keep(step(1.f));
  const std::size_t planned = allocated();
  auto row = [&](const char* what, std::size_t bytes, double goal) {
    const double each = static_cast<double>(bytes) / nodes;
    bench::row(str(what, count, " scalar adds, a node"), bench::text(each, "B"),
               bench::text(goal, "B, the goal"), each / goal, bench::at_most(1));
  };
  row("graph of ", written - before, 128);
  row("plan of ", planned - written, 256);
}

/// Two independent chains of products against one of them, on two threads.
void branches() {
  constexpr std::int64_t n = 96;
  constexpr int length = 64;
  session s({.fold = false, .intra_op_threads = 2});
  placeholder<float, n, n> x("x"), w("w"), v("v");
  tensor<float, n, n> one = x, other = x;
  for (int i = 0; i < length; ++i) {
    one = matmul(one, w);
    other = matmul(other, v);
  }
  // Every element of a product is the mean of a row: neither large nor denormal.
  ndarray<float, n, n> in, means;
  for (auto& e : in) e = 1.5f;
  for (auto& e : means) e = 1.f / n;
  auto single = s.prepare(one, feeds(x, w));
  auto both = s.prepare(one, other, feeds(x, w, v));
  auto o = bench::in_turns(bench::timed([&] { bench::keep(both(in, means, means)); }),
                           bench::timed([&] { bench::keep(single(in, means)); }));
  bench::time_row("two chains of 64 matmuls 96x96, 2 threads", o, "one chain", bench::at_most(1.2));
}

/// The sum of the squares of 64 MB, scaled: two intermediates of 64 MB. The factors are constants
/// and not literals, so that every plan is different.
double resident_after(int plans) {
  session s({.fold = false, .fuse = false, .intra_op_threads = 1});
  constexpr std::int64_t elements = 16 << 20;
  placeholder<float, dyn> x("x");
  ndarray<float, dyn> in(elements);
  for (auto& e : in) e = 1.f;
  for (int turn = 0; turn < 2; ++turn)
    for (int i = 0; i < plans; ++i) {
      tensor<float, dyn> scaled = x * constant(static_cast<float>(i + 1));
      tensor<float, dyn> squares = square(scaled);
      bench::keep(s.run(sum(squares), x = in));
    }
  return bench::status_of(getpid(), "VmRSS") * 1024;
}

void memory_of_plans() {
  auto measured = [](int plans) {
    return std::stod(
        bench::program({"/proc/self/exe", "--resident", std::to_string(plans)}).line());
  };
  const double one = measured(1), twelve = measured(12);
  auto text = [](double bytes) { return bench::text(bytes / 1e6, "MB"); };
  bench::row("12 plans with two 64 MB intermediates, resident", text(twelve),
             text(one) + " one plan", twelve / one, bench::at_most(1.5));
}

/// A layer with an L2 penalty, so that the loss itself reads the weights that the step updates.
void order_of_fetches() {
  session s({.intra_op_threads = 1});
  placeholder<float, 100, 784> x("x");
  placeholder<float, 100, 500> y("y");
  variable<float, 784, 500> w("w", truncated_normal(0.05));
  tensor<float> loss = mean(square(matmul(x, w) - y)) + 1e-3f * sum(square(w));
  operation train = sgd(1e-3f).minimize(loss);
  s.run(initialize_all());
  ndarray<float, 100, 784> in;
  ndarray<float, 100, 500> out;
  for (auto& e : in) e = 0.01f;
  auto train_first = s.prepare(train, loss, feeds(x, y));
  auto loss_first = s.prepare(loss, train, feeds(x, y));
  auto o = bench::in_turns(bench::timed([&] { bench::keep(train_first(in, out)); }, 0.02),
                           bench::timed([&] { bench::keep(loss_first(in, out)); }, 0.02));
  bench::time_row("run(train, loss), L2-regularised 784x500, batch 100", o, "run(loss, train)",
                  bench::at_most(1.03));
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto plans = bench::flag(argc, argv, "resident"); !plans.empty()) {
    std::printf("%.0f\n", resident_after(std::stoi(plans)));
    return 0;
  }
  chain<>(1'000, "chain of 1,000 scalar adds", 12e-9);
  chain<16>(1'000, "chain of 1,000 adds of 16 floats", 12e-9);
  chain<>(100'000, "chain of 100,000 scalar adds", 25e-9);
  chain<16>(100'000, "chain of 100,000 adds of 16 floats", 25e-9);
  memory_of_nodes(100'000, "100,000");
  memory_of_nodes(1'000'000, "1,000,000");
  memory_of_plans();
  order_of_fetches();
  branches();
}
