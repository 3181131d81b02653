// SPDX-License-Identifier: Apache-2.0
// benchmarks/numbers.cpp: a session's heavy steps against hand-written Eigen, on one thread unless
// a row says two.
//
// Arguments are fed without a copy and results handed over; the hand-written side writes into
// buffers made once, from the same allocator.
#include <cmath>

#include "bench.hpp"
#include "by_hand.hpp"

namespace {

using namespace deft;
using bench::eigen;
using bench::filled;
using bench::matrix;
using bench::vector;

const session_options one_thread{.intra_op_threads = 1};
constexpr const char* by_hand = "Eigen by hand";

/// The portable forms have swapped operands, so that no compiled kernel of this program has their
/// signature.
void elementwise(std::int64_t n, const std::string& size) {
  vector x = filled(vector(n)), d = filled(vector(n)), z(n);
  placeholder<float, dyn> px("x"), pd("d");
  any_tensor ax(px), ad(pd);
  session s(one_thread);

  auto six = s.prepare(square(relu(px * 1.7f + 0.3f) * 0.9f - pd), feeds(px, pd));
  any_tensor six_portable = square(relu(0.3f + 1.7f * ax) * 0.9f - ad);
  auto gelu =
      s.prepare(0.5f * px * (1.f + tanh(0.79788456f * (px + 0.044715f * px * px * px))), feeds(px));
  any_tensor gelu_portable =
      (tanh((ax * ax * ax * 0.044715f + ax) * 0.79788456f) + 1.f) * ax * 0.5f;
  auto six_again = s.prepare(six_portable, feeds(px, pd));
  auto gelu_again = s.prepare(gelu_portable, feeds(px));

  auto X = eigen(x), D = eigen(d), Z = eigen(z);
  auto six_by_hand = bench::timed([&] {
    Z = ((X * 1.7f + 0.3f).max(0.f) * 0.9f - D).square();
    bench::keep(z);
  });
  auto gelu_by_hand = bench::timed([&] {
    Z = 0.5f * X * (1.f + (0.79788456f * (X + 0.044715f * X * X * X)).tanh());
    bench::keep(z);
  });
  auto measured = [&](const std::string& work, auto& step, const bench::measure& hand, double bound,
                      auto&... arguments) {
    auto deft = bench::timed([&] { bench::keep(step(arguments...)); });
    bench::work_row(work + size, bench::in_turns(deft, hand), by_hand, bench::at_least(bound));
  };
  measured("six-operation chain, compiled, ", six, six_by_hand, 0.93, x, d);
  measured("six-operation chain, portable program, ", six_again, six_by_hand, 0.6, x, d);
  measured("gelu, compiled, ", gelu, gelu_by_hand, 0.93, x);
  measured("gelu, portable program, ", gelu_again, gelu_by_hand, 0.6, x);
}

/// Powers of positive numbers. Eigen's power is wrong by up to 30 units in the last place; that of
/// the C library, element by element, is not.
void powers(std::int64_t n, const std::string& size) {
  vector x = filled(vector(n)), z(n);
  for (auto& v : x) v = std::abs(v) + 0.01f;
  placeholder<float, dyn> px("x");
  session s(one_thread);
  auto X = eigen(x), Z = eigen(z);
  for (float k : {3.f, 2.5f, 0.5f}) {
    auto step = s.prepare(pow(px, k), feeds(px));
    std::vector<bench::measure> all{bench::timed([&] { bench::keep(step(x)); }), bench::timed([&] {
                                      Z = X.pow(k);
                                      bench::keep(z);
                                    })};
    const bool general = k == 2.5f;
    if (general)
      all.push_back(bench::timed([&] {
        for (std::int64_t i = 0; i < n; ++i) z(i) = std::pow(x(i), k);
        bench::keep(z);
      }));
    const auto taken = bench::in_turns(all, 15);
    const std::string work = ext::str("pow(x, ", k, "), ", size);
    bench::work_row(work, {taken[0], taken[1]}, "Eigen's pow", {});
    if (general) bench::work_row(work, {taken[0], taken[2]}, "std::pow by hand", {});
  }
}

/// Named statements against one expression with swapped operands, so that the region of the plan
/// has no compiled kernel as a whole.
void named_statements(std::int64_t n, const std::string& size, double bound) {
  vector x = filled(vector(n)), y = filled(vector(n));
  placeholder<float, dyn> px("x"), py("y");
  session s(one_thread);
  tensor<float, dyn> a = px * 2.f + py;
  tensor<float, dyn> b = relu(a) - 0.5f;
  tensor<float, dyn> c = b * py;
  auto named = s.prepare(c, feeds(px, py));
  auto whole = s.prepare(py * (relu(py + 2.f * px) - 0.5f), feeds(px, py));
  bench::time_row("three named statements, " + size,
                  bench::in_turns(bench::timed([&] { bench::keep(named(x, y)); }),
                                  bench::timed([&] { bench::keep(whole(x, y)); })),
                  "one expression", bench::at_most(bound));
}

/// An optimizer's updates alone: the gradient is fed.
template <std::int64_t Rows, std::int64_t Columns>
void updates(const std::string& size) {
  matrix g = filled(matrix(Rows, Columns)), w = filled(matrix(Rows, Columns)), a(Rows, Columns);
  for (auto& v : a) v = 1;
  graph own;
  auto in_it = as_default(own);
  placeholder<float, Rows, Columns> pg("g");
  variable<float, Rows, Columns> vw("w", zeros()), va("a", ones());
  session s(one_thread);
  s.run(initialize_all());
  auto sgd = s.prepare(vw.assign_sub(pg * 0.1f), feeds(pg));
  auto squares = va.assign_add(square(pg));
  auto adagrad = s.prepare(vw.assign_sub(pg * 0.1f / sqrt(squares.value())), feeds(pg));
  ndarray<float, Rows, Columns> fed;
  std::copy(g.begin(), g.end(), fed.begin());
  auto G = eigen(g), W = eigen(w), A = eigen(a);
  auto by_row = [&](const std::string& work, auto& step, const bench::measure& hand, double bound) {
    bench::work_row(work + size, bench::in_turns(bench::timed([&] { step(fed); }), hand), by_hand,
                    bench::at_least(bound));
  };
  by_row("SGD update, ", sgd, bench::timed([&] {
           W.array() -= 0.1f * G.array();
           bench::keep(w);
         }),
         0.9);
  by_row("Adagrad update, ", adagrad, bench::timed([&] {
           A.array() += G.array().square();
           W.array() -= 0.1f * G.array() / A.array().sqrt();
           bench::keep(w);
         }),
         0.9);
}

/// Sums of computed elements: written as one expression, and found by the plan in a form without a
/// compiled kernel in this program.
void reductions(std::int64_t n, const std::string& size, double written, double found) {
  vector x = filled(vector(n)), y = filled(vector(n));
  placeholder<float, dyn> px("x"), py("y");
  any_tensor ax(px), ay(py);
  session s(one_thread);
  auto X = eigen(x), Y = eigen(y);
  float sink = 0;
  auto by_row = [&](const std::string& work, auto& step, const bench::measure& hand, double bound,
                    auto&... arguments) {
    auto deft = bench::timed([&] { bench::keep(step(arguments...)); });
    bench::work_row(work + size, bench::in_turns(deft, hand), by_hand, bench::at_least(bound));
  };
  auto expression = s.prepare(sum(square(px - py)), feeds(px, py));
  any_tensor difference = ax - ay;
  auto portable = s.prepare(sum(difference * difference), feeds(px, py));
  auto squares_by_hand = bench::timed([&] {
    sink = (X - Y).square().sum();
    bench::keep(sink);
  });
  by_row("sum(square(x - y)), written, ", expression, squares_by_hand, written, x, y);
  by_row("sum(square(x - y)), found, ", portable, squares_by_hand, found, x, y);
  auto moments = s.prepare(mean(px), mean(square(px - mean(px))), feeds(px));
  by_row("mean and variance, ", moments, bench::timed([&] {
           const float m = X.mean();
           sink = m + (X - m).square().mean();
           bench::keep(sink);
         }),
         written, x);
}

/// Rows: their sums, layer normalization, and short ones.
template <std::int64_t Columns>
void rows(std::int64_t count, const std::string& size, double norm_bound, double sum_bound) {
  matrix x = filled(matrix(count, Columns)), y(count, Columns);
  vector gain = filled(vector(Columns)), shift = filled(vector(Columns)), sums(count);
  placeholder<float, dyn, Columns> px("x");
  placeholder<float, Columns> pg("gain"), ps("shift");
  session s(one_thread);
  const ndarray<float, dyn, Columns> fed(any_array(x.array()));
  const ndarray<float, Columns> g(any_array(gain.array())), b(any_array(shift.array()));
  auto X = eigen(x), Y = eigen(y);
  auto G = eigen(gain).matrix().transpose().array(), B = eigen(shift).matrix().transpose().array();
  auto S = eigen(sums);
  auto by_row = [&](const std::string& work, auto& step, const bench::measure& hand, double bound,
                    auto&... arguments) {
    auto deft = bench::timed([&] { bench::keep(step(arguments...)); });
    bench::work_row(work + size, bench::in_turns(deft, hand), by_hand, bench::at_least(bound));
  };
  auto m = mean(px, axis<1>, keepdims);
  auto d = px - m;
  auto v = mean(square(d), axis<1>, keepdims);
  auto norm = s.prepare(d * (1.f / sqrt(v + 1e-5f)) * pg + ps, feeds(px, pg, ps));
  by_row("layer norm, ", norm, bench::timed([&] {
           for (std::int64_t i = 0; i < count; ++i) {
             const auto r = X.row(i).array();
             const float mean = r.mean(), variance = (r - mean).square().mean();
             Y.row(i).array() = (r - mean) * (1.f / std::sqrt(variance + 1e-5f)) * G + B;
           }
           bench::keep(y);
         }),
         norm_bound, fed, g, b);
  auto squares = s.prepare(sum(px * px, axis<1>), feeds(px));
  by_row("sum(x * x) along rows, ", squares, bench::timed([&] {
           S = X.array().square().rowwise().sum();
           bench::keep(sums);
         }),
         sum_bound, fed);
  if constexpr (Columns <= 32) {
    auto soft = s.prepare(softmax(px), feeds(px));
    by_row("softmax, ", soft, bench::timed([&] {
             for (std::int64_t i = 0; i < count; ++i) {
               auto q = Y.row(i).array();
               q = (X.row(i).array() - X.row(i).maxCoeff()).exp();
               q *= 1.f / q.sum();
             }
             bench::keep(y);
           }),
           0.7, fed);
    auto sum_of = s.prepare(sum(px, axis<1>), feeds(px));
    by_row("sum along rows, ", sum_of, bench::timed([&] {
             for (std::int64_t i = 0; i < count; ++i) S(i) = X.row(i).sum();
             bench::keep(sums);
           }),
           0.7, fed);
    auto largest = s.prepare(argmax(px, axis<1>), feeds(px));
    std::vector<std::int64_t> at(static_cast<std::size_t>(count));
    by_row("argmax along rows, ", largest, bench::timed([&] {
             for (std::int64_t i = 0; i < count; ++i) {
               std::int64_t best = 0;
               for (std::int64_t j = 1; j < Columns; ++j)
                 if (X(i, j) > X(i, best)) best = j;
               at[static_cast<std::size_t>(i)] = best;
             }
             bench::keep(at);
           }),
           0.7, fed);
  }
}

void products() {
  session s(one_thread);
  {
    matrix a = filled(matrix(1024, 1024)), b = filled(matrix(1024, 1024)), c(1024, 1024);
    placeholder<float, dyn, dyn> pa("a"), pb("b");
    auto step = s.prepare(matmul(pa, pb), feeds(pa, pb));
    auto A = eigen(a), B = eigen(b), C = eigen(c);
    auto o = bench::in_turns(bench::timed([&] { bench::keep(step(a, b)); }), bench::timed([&] {
                               C.noalias() = A * B;
                               bench::keep(c);
                             }));
    bench::work_row("matmul 1024", o, "Eigen", bench::at_least(0.95));
  }
  matrix x = filled(matrix(100, 784)), w = filled(matrix(784, 128)), g = filled(matrix(100, 128));
  matrix y(100, 128), dx(100, 784), dw(784, 128);
  placeholder<float, dyn, 784> px("x");
  placeholder<float, 784, 128> pw("w");
  placeholder<float, dyn, 128> pg("g");
  auto product = matmul(px, pw);
  auto [gx, gw] = gradients(product * pg, px, pw);
  auto step = s.prepare(product, gx, gw, feeds(px, pw, pg));
  ndarray<float, 784, 128> fixed(any_array(w.array()));
  auto X = eigen(x), W = eigen(w), G = eigen(g), Y = eigen(y), DX = eigen(dx), DW = eigen(dw);
  auto x784 = ndarray<float, dyn, 784>(any_array(x.array()));
  auto g128 = ndarray<float, dyn, 128>(any_array(g.array()));
  auto o = bench::in_turns(bench::timed([&] { bench::keep(step(x784, fixed, g128)); }),
                           bench::timed([&] {
                             Y.noalias() = X * W;
                             DX.noalias() = G * W.transpose();
                             DW.noalias() = X.transpose() * G;
                             bench::keep(dw);
                           }));
  bench::work_row("matmul 100x784x128 and both gradients", o, "Eigen", bench::at_least(0.95));
}

void cross_entropy(std::int64_t rows, std::int64_t columns, int threads, const std::string& size,
                   double bound) {
  matrix l = filled(matrix(rows, columns)), d(rows, columns);
  ndarray<std::int32_t, dyn> t(rows);
  for (std::int64_t i = 0; i < rows; ++i) t(i) = static_cast<std::int32_t>(i * 7919 % columns);
  session s({.intra_op_threads = threads});
  placeholder<float, dyn, dyn> logits("logits");
  placeholder<std::int32_t, dyn> label("label");
  auto loss = mean(softmax_cross_entropy(logits, label));
  auto [gradient] = gradients(loss, logits);
  auto step = s.prepare(loss, gradient, feeds(logits, label));
  auto L = eigen(l), D = eigen(d);
  float sums[2];
  auto some_rows = [&](int half) {
    float sum = 0;
    for (std::int64_t i = half * rows / threads; i < (half + 1) * rows / threads; ++i) {
      auto q = D.row(i).array();
      float high = L.row(i).maxCoeff();
      q = (L.row(i).array() - high).exp();
      float z = q.sum();
      sum += std::log(z) + high - L(i, t(i));
      q *= 1.f / (z * static_cast<float>(rows));
      q(t(i)) -= 1.f / static_cast<float>(rows);
    }
    sums[half] = sum;
  };
  bench::two_threads both(some_rows);
  auto o = bench::in_turns(bench::timed([&] { bench::keep(step(l, t)); }), bench::timed([&] {
                             threads == 1 ? some_rows(0) : both();
                             bench::keep(sums);
                             bench::keep(d);
                           }));
  bench::work_row("cross entropy and its gradient, " + size, o, by_hand, bench::at_least(bound));
}

/// The gradients of a layer's activation and of its bias.
void bias_gradient() {
  matrix dz = filled(matrix(4096, 1000)), h = filled(matrix(4096, 1000)), d(4096, 1000);
  vector sums(1000);
  placeholder<float, dyn, 1000> pz("dz");
  placeholder<float, dyn, 1000> ph("h");
  session s(one_thread);
  tensor<float, dyn, 1000> masked = where(ph > 0.f, pz, 0.f);
  auto step = s.prepare(masked, sum(masked, axis<0>), feeds(pz, ph));
  const ndarray<float, dyn, 1000> z(any_array(dz.array())), a(any_array(h.array()));
  auto Z = eigen(dz), H = eigen(h), D = eigen(d);
  auto S = eigen(sums).matrix().transpose().array();
  bench::work_row("activation and bias gradient, 4096x1000",
                  bench::in_turns(bench::timed([&] { bench::keep(step(z, a)); }), bench::timed([&] {
                                    S = 0;
                                    for (std::int64_t i = 0; i < 4096; ++i) {
                                      D.row(i).array() =
                                          (H.row(i).array() > 0.f).select(Z.row(i).array(), 0.f);
                                      S += D.row(i).array();
                                    }
                                    bench::keep(sums);
                                    bench::keep(d);
                                  })),
                  by_hand, bench::at_least(0.85));
}

}  // namespace

int main() {
  elementwise(10'000'000, "1e7");
  elementwise(100'000, "1e5");
  powers(10'000'000, "1e7");
  powers(100'000, "1e5");
  named_statements(10'000'000, "1e7", 1.05);
  named_statements(100'000, "1e5", 1.45);
  updates<784, 500>("784x500");
  updates<2000, 2000>("2000x2000");
  reductions(10'000'000, "1e7", 0.9, 0.9);
  reductions(100'000, "1e5", 0.85, 0.55);
  rows<1024>(4096, "4096x1024", 0.85, 0.6);
  rows<4096>(4096, "4096x4096", 0.85, 0.9);
  rows<10>(100'000, "100000x10", 0.7, 0.7);
  products();
  cross_entropy(100, 10, 1, "100x10", 0.7);
  cross_entropy(4096, 1000, 1, "4096x1000", 0.92);
  cross_entropy(4096, 1000, 2, "4096x1000, 2 threads", 0.85);
  bias_gradient();
}
