// SPDX-License-Identifier: Apache-2.0
// benchmarks/kernels.cpp: steps of one kernel each, on one thread and on two, against the same by
// torch and JAX and by hand-written Eigen, in turns.
//
// bench_kernels [--peers ENVIRONMENT] [--only TEXT]
//
// A program for AVX2 is measured next to peers that may use AVX2, others next to peers that use
// what the processor has; --only measures the rows that have TEXT in their names. Memory is kept on
// all sides: else large results would measure the allocator.
#include <malloc.h>

#include <cmath>
#include <cstring>

#include "bench.hpp"
#include "by_hand.hpp"
#include "peers.hpp"

namespace {

using namespace deft;
using bench::eigen;
using bench::filled;
using bench::matrix;
using bench::matrix_of;
using bench::vector;
using bench::vector_of;

#if defined(__AVX512F__)
constexpr const char* width = "AVX-512";
#elif defined(__AVX2__)
constexpr const char* width = "AVX2";
#elif defined(__x86_64__)
constexpr const char* width = "SSE";
#else
constexpr const char* width = "baseline";
#endif
/// Of the peers' times; the baseline has half the registers' width.
#ifdef __AVX2__
constexpr double of_peers = 1;
#else
constexpr double of_peers = 2;
#endif

/// One part of the work by hand; `parts` is the number of threads.
using by_hand = std::function<void(int part, int parts)>;
/// What part `part` does of n: where it begins; it ends where the next one begins.
std::int64_t begin_of(std::int64_t n, int part, int parts) { return n * part / parts; }

/// What is asked of a row: of the speed by hand, and of the best peer's time.
struct goals {
  double speed_by_hand = 0.9, time_of_peers = of_peers;
};

/// The rows of one number of threads.
class table {
 public:
  table(int threads, const std::string& environment, std::string only)
      : threads_(threads), only_(std::move(only)), session_({.intra_op_threads = threads}) {
    const std::string python = bench::python_of(environment);
    if (python.empty()) return;
    for (const auto& [kind, name] :
         {std::pair{"eager", "torch"}, {"compile", "torch.compile"}, {"jax", "JAX"}})
      peers_.emplace_back(
          name, std::vector<std::string>{python, bench::peers_folder() + "/kernels.py", kind,
                                         std::to_string(threads)});
  }

  /// A step of deft's, next to what the peers know by the name `work`, and to the same by hand.
  template <class Step>
  void row(const std::string& work, Step step, const by_hand& hand = {}, const goals& asked = {}) {
    if (work.find(only_) == std::string::npos) return;
    // Everyone works for a turn before the one that counts: others' threads spin for a while.
    const auto twice = [](bench::measure turn) { return [turn] { return turn(), turn(); }; };
    std::vector<bench::measure> all{twice(bench::timed(step))};
    for (const auto& p : peers_) all.push_back(p.turns(work));
    std::optional<bench::two_threads> both;
    if (hand && threads_ == 2) both.emplace([&](int part) { hand(part, 2); });
    if (hand) all.push_back(twice(bench::timed([&] { both ? (*both)() : hand(0, 1); })));
    const auto taken = bench::in_turns(all, 11);

    const std::string label = work + (threads_ == 1 ? "" : ", 2 threads");
    const auto peers = std::span(taken).subspan(1, peers_.size());
    const auto best = std::min_element(peers.begin(), peers.end());
    const bool known = best != peers.end() && std::isfinite(*best);
    if (known)
      bench::time_row(label, {taken[0], *best},
                      peers_[static_cast<std::size_t>(best - peers.begin())].name(),
                      bench::at_most(asked.time_of_peers));
    if (hand)
      bench::work_row(label, {taken[0], taken.back()}, "Eigen by hand",
                      bench::at_least(asked.speed_by_hand));
    if (!hand && !known) bench::row(label, bench::time_text(taken[0]));
  }
  int threads() const { return threads_; }
  session& s() { return session_; }

 private:
  int threads_;
  std::string only_;
  session session_;
  std::vector<bench::peer> peers_;
};

std::string by(std::int64_t rows, std::int64_t columns) { return ext::str(rows, "x", columns); }

// Reductions ------------------------------------------------------------------------------------

void reductions(table& t) {
  for (std::int64_t n : {100'000, 10'000'000}) {
    const vector x = filled(vector(n));
    placeholder<float, dyn> p("x");
    float sums[2];
    auto X = eigen(x);
    auto total = t.s().prepare(sum(p), feeds(p));
    t.row(
        ext::str("sum of ", n), [&] { bench::keep(total(x)); },
        [&](int i, int of) {
          const auto b = begin_of(n, i, of), e = begin_of(n, i + 1, of);
          sums[i] = X.segment(b, e - b).sum();
          bench::keep(sums);
        });
    if (n > 100'000) continue;
    auto moments = t.s().prepare(mean(p), mean(square(p - mean(p))), feeds(p));
    t.row(ext::str("mean and variance of ", n), [&] { bench::keep(moments(x)); });
    placeholder<float, dyn> q("y");
    auto added = t.s().prepare(p + q, feeds(p, q));
    vector z(n);
    auto Z = eigen(z);
    t.row(
        ext::str("x + y of ", n), [&] { bench::keep(added(x, x)); },
        [&](int i, int of) {
          const auto b = begin_of(n, i, of), e = begin_of(n, i + 1, of);
          Z.segment(b, e - b) = X.segment(b, e - b) + X.segment(b, e - b);
          bench::keep(z);
        });
  }

  const matrix x = filled(matrix(4096, 4096));
  vector each(4096);
  vector_of<std::int64_t> first(4096);
  auto X = eigen(x);
  auto Y = eigen(each);
  placeholder<float, dyn, dyn> p("x");
  auto rows = [&](const char* what, auto step, auto of_row) {
    t.row(
        ext::str(what, " along rows, ", by(4096, 4096)), [&] { bench::keep(step(x)); },
        [&](int i, int of) {
          for (auto r = begin_of(4096, i, of); r < begin_of(4096, i + 1, of); ++r) of_row(r);
          bench::keep(each), bench::keep(first);
        });
  };
  rows("sum", t.s().prepare(sum(p, axis<1>), feeds(p)),
       [&](std::int64_t r) { Y(r) = X.row(r).sum(); });
  rows("max", t.s().prepare(max(p, axis<1>), feeds(p)),
       [&](std::int64_t r) { Y(r) = X.row(r).maxCoeff(); });
  rows("argmax", t.s().prepare(argmax(p, axis<1>), feeds(p)), [&](std::int64_t r) {
    const float most = X.row(r).maxCoeff();
    const float* at = x.data() + r * 4096;
    first(r) = std::find(at, at + 4096, most) - at;
  });
}

/// Rows of ten.
void short_rows(table& t) {
  constexpr std::int64_t count = 100'000, columns = 10;
  const matrix x = filled(matrix(count, columns));
  const ndarray<float, dyn, columns> fed(any_array(x.array()));
  matrix y(count, columns);
  vector sums(count);
  vector_of<std::int64_t> first(count);
  auto X = eigen(x);
  auto Y = eigen(y);
  auto S = eigen(sums);
  placeholder<float, dyn, columns> p("x");
  auto rows = [&](const char* what, auto step, auto of_row) {
    t.row(
        ext::str(what, " along rows, ", by(count, columns)), [&] { bench::keep(step(fed)); },
        [&](int i, int of) {
          for (auto r = begin_of(count, i, of); r < begin_of(count, i + 1, of); ++r) of_row(r);
          bench::keep(y), bench::keep(sums), bench::keep(first);
        },
        {.speed_by_hand = 0.7});
  };
  using ten = Eigen::Array<float, 1, columns>;
  const auto of = [&](std::int64_t r) { return Eigen::Map<const ten>(x.data() + r * columns); };
  rows("sum", t.s().prepare(sum(p, axis<1>), feeds(p)),
       [&](std::int64_t r) { S(r) = of(r).sum(); });
  rows("softmax", t.s().prepare(softmax(p), feeds(p)), [&](std::int64_t r) {
    const ten e = (of(r) - of(r).maxCoeff()).exp();
    Y.row(r) = e * (1.f / e.sum());
  });
  rows("argmax", t.s().prepare(argmax(p, axis<1>), feeds(p)), [&](std::int64_t r) {
    std::int64_t best = 0;
    for (std::int64_t j = 1; j < columns; ++j) best = X(r, j) > X(r, best) ? j : best;
    first(r) = best;
  });
  if (t.threads() > 1) return;

  const matrix l = filled(matrix(100, columns));
  const ndarray<float, dyn, columns> logits(any_array(l.array()));
  matrix d(100, columns);
  vector_of<std::int32_t> labels(100);
  for (std::int64_t i = 0; i < 100; ++i) labels(i) = static_cast<std::int32_t>(i * 7 % columns);
  placeholder<std::int32_t, dyn> label("label");
  auto loss = mean(softmax_cross_entropy(p, label));
  auto [gradient] = gradients(loss, p);
  auto step = t.s().prepare(loss, gradient, feeds(p, label));
  auto L = eigen(l);
  auto D = eigen(d);
  t.row(
      "cross entropy and its gradient, 100x10", [&] { bench::keep(step(logits, labels)); },
      [&](int, int) {
        float sum = 0;
        for (std::int64_t i = 0; i < 100; ++i) {
          const ten row = L.row(i);
          const float high = row.maxCoeff();
          ten q = (row - high).exp();
          const float z = q.sum();
          sum += std::log(z) + high - row(labels(i));
          q *= 1.f / (z * 100);
          q(labels(i)) -= 1.f / 100;
          D.row(i) = q;
        }
        bench::keep(sum), bench::keep(d);
      },
      {.speed_by_hand = 0.7});
}

// Random numbers --------------------------------------------------------------------------------

template <std::int64_t N>
void random_numbers(table& t) {
  auto normal = t.s().prepare(random_normal(shape<N>));
  t.row(ext::str("normal, ", N), [&] { bench::keep(normal()); }, {},
        {.time_of_peers = 0.7 * of_peers});
  auto uniform = t.s().prepare(random_uniform(shape<N>));
  t.row(ext::str("uniform, ", N), [&] { bench::keep(uniform()); }, {},
        {.time_of_peers = 0.5 * of_peers});
}

// Products --------------------------------------------------------------------------------------

template <class T>
void product(table& t, std::int64_t m, std::int64_t k, std::int64_t n, const char* type = "") {
  const auto a = filled(matrix_of<T>(m, k)), b = filled(matrix_of<T>(k, n));
  matrix_of<T> c(m, n);
  auto A = eigen(a);
  auto B = eigen(b);
  auto C = eigen(c);
  placeholder<T, dyn, dyn> p("a"), q("b");
  auto step = t.s().prepare(matmul(p, q), feeds(p, q));
  t.row(
      ext::str("matmul ", m, "x", k, "x", n, type), [&] { bench::keep(step(a, b)); },
      [&](int i, int of) {
        if (m == 1) {
          const auto f = begin_of(n, i, of), e = begin_of(n, i + 1, of);
          C.middleCols(f, e - f).noalias() = A * B.middleCols(f, e - f);
        } else {
          const auto f = begin_of(m, i, of), e = begin_of(m, i + 1, of);
          C.middleRows(f, e - f).noalias() = A.middleRows(f, e - f) * B;
        }
        bench::keep(c);
      });
}

/// `count` products of matrices, b transposed or not.
template <bool Transposed>
void batch(table& t, std::int64_t count, std::int64_t m, std::int64_t k, std::int64_t n) {
  using matrices = ndarray<float, dyn, dyn, dyn>;
  const std::int64_t b_rows = Transposed ? n : k, b_columns = Transposed ? k : n;
  const auto a = filled(matrices(count, m, k)), b = filled(matrices(count, b_rows, b_columns));
  matrices c(count, m, n);
  placeholder<float, dyn, dyn, dyn> p("a"), q("b");
  auto step = t.s().prepare(Transposed ? ext::matmul_nt(p, q) : matmul(p, q), feeds(p, q));
  const auto one = [](const float* all, std::int64_t i, std::int64_t rows, std::int64_t columns) {
    return Eigen::Map<const bench::dense<float>>(all + i * rows * columns, rows, columns);
  };
  t.row(
      ext::str(count, " products ", m, "x", k, "x", n, Transposed ? " transposed" : ""),
      [&] { bench::keep(step(a, b)); },
      [&](int part, int of) {
        for (auto i = begin_of(count, part, of); i < begin_of(count, part + 1, of); ++i) {
          const auto A = one(a.data(), i, m, k), B = one(b.data(), i, b_rows, b_columns);
          Eigen::Map<bench::dense<float>> C(c.begin() + i * m * n, m, n);
          if constexpr (Transposed)
            C.noalias() = A * B.transpose();
          else
            C.noalias() = A * B;
        }
        bench::keep(c);
      });
}

void products(table& t) {
  product<float>(t, 1, 1024, 1024);
  product<double>(t, 1, 1024, 1024, " of doubles");
  if (t.threads() == 1) product<float>(t, 16, 16, 16);
  product<float>(t, 128, 128, 128);
  product<float>(t, 1024, 64, 64);
  product<float>(t, 1024, 784, 500);
  product<float>(t, 1024, 1024, 1024);
  product<float>(t, 2048, 2048, 2048);
  batch<false>(t, 64, 128, 64, 128);
  batch<true>(t, 64, 128, 64, 128);
  batch<false>(t, 12, 384, 64, 384);
  batch<true>(t, 12, 384, 64, 384);
}

// Rows and elements -----------------------------------------------------------------------------

void rows_and_elements(table& t) {
  constexpr std::int64_t count = 4096, columns = 1024;
  const matrix x = filled(matrix(count, columns));
  const ndarray<float, dyn, columns> fed(any_array(x.array()));
  const vector gain = filled(vector(columns)), shift = filled(vector(columns));
  const ndarray<float, columns> g(any_array(gain.array())), b(any_array(shift.array()));
  const ndarray<float, dyn, 1> tall(any_array(filled(matrix(count, 1)).array()));
  matrix y(count, columns);
  auto X = eigen(x);
  auto Y = eigen(y);
  auto G = eigen(gain).transpose();
  auto B = eigen(shift).transpose();
  placeholder<float, dyn, columns> p("x");
  placeholder<float, columns> pg("gain"), pb("shift");
  placeholder<float, dyn, 1> column("column");
  auto rows = [&](const std::string& what, auto step, auto of_row, const auto&... arguments) {
    t.row(
        what + ", " + by(count, columns), [&] { bench::keep(step(fed, arguments...)); },
        [&](int i, int of) {
          for (auto r = begin_of(count, i, of); r < begin_of(count, i + 1, of); ++r) of_row(r);
          bench::keep(y);
        });
  };
  auto d = p - mean(p, axis<1>, keepdims);
  rows(
      "layer norm",
      t.s().prepare(d * (1.f / sqrt(mean(square(d), axis<1>, keepdims) + 1e-5f)) * pg + pb,
                    feeds(p, pg, pb)),
      [&](std::int64_t r) {
        const auto row = X.row(r).array();
        const float m = row.mean(), v = (row - m).square().mean();
        Y.row(r).array() = (row - m) * (1.f / std::sqrt(v + 1e-5f)) * G + B;
      },
      g, b);
  rows(
      "relu(x + row)", t.s().prepare(relu(p + pg), feeds(p, pg)),
      [&](std::int64_t r) { Y.row(r).array() = (X.row(r).array() + G).max(0.f); }, g);
  rows(
      "x * column", t.s().prepare(p * column, feeds(p, column)),
      [&](std::int64_t r) { Y.row(r).array() = X.row(r).array() * tall(r, 0); }, tall);
  rows("x / the sum of its row", t.s().prepare(p / sum(p, axis<1>, keepdims), feeds(p)),
       [&](std::int64_t r) { Y.row(r).array() = X.row(r).array() / X.row(r).sum(); });
}

/// Casts and joins: what is bound by memory.
void moves(table& t) {
  constexpr std::int64_t n = 10'000'000;
  const vector x = filled(vector(n));
  vector_of<double> wide(n);
  vector_of<std::int32_t> whole(n);
  vector_of<std::uint8_t> bytes(n);
  vector back(n);
  auto cast_row = [&](const char* what, auto step, const auto& from, auto& to) {
    t.row(
        ext::str("cast of ", n, " ", what), [&] { bench::keep(step(from)); },
        [&](int i, int of) {
          using to_type = typename std::remove_cvref_t<decltype(to)>::value_type;
          const auto b = begin_of(n, i, of), e = begin_of(n, i + 1, of);
          eigen(to).segment(b, e - b) = eigen(from).segment(b, e - b).template cast<to_type>();
          bench::keep(to);
        });
  };
  placeholder<float, dyn> p("x");
  placeholder<std::uint8_t, dyn> pb("bytes");
  cast_row("floats to int32", t.s().prepare(cast<std::int32_t>(p), feeds(p)), x, whole);
  cast_row("floats to doubles", t.s().prepare(cast<double>(p), feeds(p)), x, wide);
  cast_row("bytes to floats", t.s().prepare(cast<float>(pb), feeds(pb)), bytes, back);

  const matrix a = filled(matrix(2048, 2048));
  matrix below(4096, 2048), beside(2048, 4096);
  placeholder<float, dyn, dyn> q("a"), r("b");
  auto first = t.s().prepare(concat(axis<0>, q, r), feeds(q, r));
  auto second = t.s().prepare(concat(axis<1>, q, r), feeds(q, r));
  constexpr std::int64_t elements = 2048 * 2048;
  t.row(
      "concat of 2 x 16 MB along axis 0", [&] { bench::keep(first(a, a)); },
      [&](int i, int of) {
        const auto b = begin_of(elements, i, of), e = begin_of(elements, i + 1, of);
        for (std::int64_t k : {0, 1})
          std::memcpy(below.data() + k * elements + b, a.data() + b,
                      static_cast<std::size_t>(e - b) * sizeof(float));
        bench::keep(below);
      });
  t.row(
      "concat of 2 x 16 MB along axis 1", [&] { bench::keep(second(a, a)); },
      [&](int i, int of) {
        for (auto k = begin_of(2048, i, of); k < begin_of(2048, i + 1, of); ++k)
          for (std::int64_t half : {0, 1})
            std::memcpy(beside.data() + (2 * k + half) * 2048, a.data() + k * 2048,
                        2048 * sizeof(float));
        bench::keep(beside);
      });
  const ndarray<float, dyn, 16> narrow(any_array(filled(matrix(1'000'000, 16)).array()));
  placeholder<float, dyn, 16> pn("narrow");
  auto column = t.s().prepare(slice(pn, at<0, 3>, shape<dyn, 1>), feeds(pn));
  t.row("a column of 1000000x16", [&] { bench::keep(column(narrow)); });
}

// Functions of an element, windows, and products that are not made --------------------------------

void functions(table& t) {
  constexpr std::int64_t n = 1'000'000;
  vector x = filled(vector(n));
  for (auto& v : x) v = std::abs(v) + 0.01f;
  const auto d = filled(vector_of<double>(n));
  placeholder<float, dyn> p("x");
  placeholder<double, dyn> q("d");
  auto row = [&](const std::string& what, auto step, const auto& from) {
    t.row(what + ext::str(" of ", n), [&] { bench::keep(step(from)); });
  };
  row("pow(x, 2)", t.s().prepare(pow(p, 2.f), feeds(p)), x);
  row("pow(x, 2.5)", t.s().prepare(pow(p, 2.5f), feeds(p)), x);
  row("pow(x, -1)", t.s().prepare(pow(p, -1.f), feeds(p)), x);
  row("sin of doubles", t.s().prepare(sin(q), feeds(q)), d);
  row("cos of doubles", t.s().prepare(cos(q), feeds(q)), d);
  row("sigmoid", t.s().prepare(sigmoid(p), feeds(p)), x);
  row("tanh", t.s().prepare(tanh(p), feeds(p)), x);
}

template <std::int64_t Channels>
void pools(table& t) {
  using images = ndarray<float, 32, 56, 56, Channels>;
  const images x = filled(images());
  placeholder<float, 32, 56, 56, Channels> p("x");
  auto most = t.s().prepare(max_pool(p, window<2>), feeds(p));
  auto average = t.s().prepare(avg_pool(p, window<2>), feeds(p));
  t.row(ext::str("max_pool of 32x56x56x", Channels), [&] { bench::keep(most(x)); });
  t.row(ext::str("avg_pool of 32x56x56x", Channels), [&] { bench::keep(average(x)); });
}

void windows(table& t) {
  pools<1>(t);
  pools<3>(t);
  pools<64>(t);
  using images = ndarray<float, 32, 28, 28, 64>;
  const images x = filled(images());
  placeholder<float, 32, 28, 28, 64> p("x");
  auto gradient = [&]<std::int64_t K, std::int64_t S>(const std::string& what, auto place) {
    using filter = ndarray<float, K, K, 64, 64>;
    using result = ndarray<float, 32, 28 / S, 28 / S, 64>;
    const filter w = filled(filter());
    const result g = filled(result());
    placeholder<float, K, K, 64, 64> pw("w");
    placeholder<float, 32, 28 / S, 28 / S, 64> pg("g");
    auto y = conv2d(p, pw, stride<S>, padding::same);
    auto [to_x, to_w] = gradients(sum(y * pg), p, pw);
    if constexpr (decltype(place)::value) {
      auto step = t.s().prepare(to_w, feeds(p, pw, pg));
      t.row(what, [&] { bench::keep(step(x, w, g)); });
    } else {
      auto step = t.s().prepare(to_x, feeds(p, pw, pg));
      t.row(what, [&] { bench::keep(step(x, w, g)); });
    }
  };
  gradient.template operator()<1, 1>("filter gradient, 1x1", std::true_type());
  gradient.template operator()<3, 1>("filter gradient, 3x3", std::true_type());
  gradient.template operator()<2, 2>("input gradient, 2x2, stride 2", std::false_type());
  gradient.template operator()<3, 1>("input gradient, 3x3", std::false_type());

  using heads = ndarray<float, 4, 4, 128, 32>;
  const heads k = filled(heads());
  placeholder<float, 4, 4, 128, 32> pq("q"), pk("k");
  auto scores = t.s().prepare(sum(expand_dims(pq, axis<3>) * expand_dims(pk, axis<2>), axis<4>),
                              feeds(pq, pk));
  t.row("scores by broadcasting, 4x4x128x128x32", [&] { bench::keep(scores(k, k)); });
}

void small_steps(table& t) {
  placeholder<float> a("a"), b("b");
  auto scalars = t.s().prepare(a + b, feeds(a, b));
  t.row("x + y of scalars", [&] { bench::keep(scalars(1.f, 2.f)); }, {}, {.time_of_peers = 0.15});
  const vector x = filled(vector(1000));
  vector z(1000);
  auto X = eigen(x);
  auto Z = eigen(z);
  placeholder<float, dyn> p("x"), q("y");
  auto step = t.s().prepare(p + q, feeds(p, q));
  t.row(
      "x + y of 1000", [&] { bench::keep(step(x, x)); },
      [&](int, int) {
        Z = X + X;
        bench::keep(z);
      },
      {.speed_by_hand = 1. / 3});
}

}  // namespace

int main(int argc, char** argv) {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  setenv("MALLOC_MMAP_MAX_", "0", 1);
  setenv("MALLOC_TRIM_THRESHOLD_", "10000000000", 1);
#if defined(__AVX2__) && !defined(__AVX512F__)
  setenv("ATEN_CPU_CAPABILITY", "avx2", 1);
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  setenv("MKL_ENABLE_INSTRUCTIONS", "AVX2", 1);
  setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX2", 1);
#endif
  const std::string peers = bench::flag(argc, argv, "peers"),
                    only = bench::flag(argc, argv, "only");
  std::printf("| %-54s | %11s | %-30s | %6s | %s |\n|---|---|---|---|---|\n",
              ext::str("work, by ", width).c_str(), "deft", "yardstick", "ratio", "asked");
  for (int threads : {1, 2}) {
    table t(threads, peers, only);
    if (threads == 1) small_steps(t);
    reductions(t);
    short_rows(t);
    random_numbers<1'000>(t);
    random_numbers<100'000>(t);
    random_numbers<10'000'000>(t);
    products(t);
    rows_and_elements(t);
    moves(t);
    functions(t);
    windows(t);
  }
}
