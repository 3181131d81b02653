// SPDX-License-Identifier: Apache-2.0
// benchmarks/models.cpp: whole models beside their peers, on one thread and on two.
//
// bench_models --peers ENVIRONMENT
#include <deft/deft.hpp>
#include <limits>
#include <memory>
#include <random>

#include "bench.hpp"
#include "program.hpp"

namespace {

using namespace deft;

/// What each peer takes, asked in turns with deft; the fastest counts.
class peers {
 public:
  peers(const std::string& python, int threads) {
    for (const char* name : {"jax", "torch", "tensorflow"}) {
      std::vector<std::string> command{python, BENCH_PEERS "/models.py", name,
                                       std::to_string(threads)};
      all_.push_back({name, std::make_unique<bench::program>(command)});
    }
  }

  void row(const std::string& work, const std::string& ask, const bench::measure& deft,
           double bound) {
    constexpr int turns = 15;
    std::vector<double> own;
    std::vector<std::vector<double>> theirs(all_.size());
    for (int t = 0; t < turns; ++t) {
      own.push_back(deft());
      for (std::size_t p = 0; p < all_.size(); ++p) {
        const std::string said = all_[p].process->ask(ask);
        if (said.empty()) {
          std::fprintf(stderr, "%s has ended\n", all_[p].name.c_str());
          std::exit(1);
        }
        theirs[p].push_back(said == "nan" ? std::numeric_limits<double>::infinity()
                                          : std::atof(said.c_str()));
      }
    }
    std::size_t best = 0;
    for (std::size_t p = 1; p < all_.size(); ++p)
      if (bench::median(theirs[p]) < bench::median(theirs[best])) best = p;
    bench::time_row(work, {bench::median(own), bench::median(theirs[best])}, all_[best].name,
                    bench::at_most(bound));
  }

 private:
  struct peer {
    std::string name;
    std::unique_ptr<bench::program> process;
  };
  std::vector<peer> all_;
};

void chain(peers& others) {
  session s({.intra_op_threads = 1});
  placeholder<float, 16> v("v"), w("w");
  ndarray<float, 16> vs, ws;
  for (auto& e : vs) e = .5f;
  for (auto& e : ws) e = .999f;
  auto by = [&](const std::string& kind, auto start, const auto& factor) {
    auto end = start;
    for (int i = 0; i < 500; ++i) {
      end = end * factor;
      end = end + 1e-3f;
    }
    auto step = s.prepare(end, feeds(v, w));
    others.row("1,000 operations on 16 floats, by " + kind, "chain",
               bench::timed([&] { bench::keep(step(vs, ws)); }), 0.4);
  };
  by("tensor<>", tensor<float, 16>(v), w);
  by("any_tensor", any_tensor(v), any_tensor(w));
}

template <std::int64_t Batch, class Rule>
void mlp(peers& others, int threads, const std::string& rule, const Rule& optimizer, double bound) {
  graph own;
  auto in_own = as_default(own);
  placeholder<float, Batch, 784> x("x");
  placeholder<std::int32_t, Batch> t("t");
  variable<float, 784, 500> w1("w1", random_normal(0, .05));
  variable<float, 500> b1("b1", zeros());
  variable<float, 500, 10> w2("w2", random_normal(0, .05));
  variable<float, 10> b2("b2", zeros());
  auto logits = matmul(relu(matmul(x, w1) + b1), w2) + b2;
  auto loss = mean(softmax_cross_entropy(logits, t));
  auto train = optimizer.minimize(loss);
  session s({.intra_op_threads = threads});
  s.run(initialize_all());
  auto step = s.prepare(loss, train, feeds(x, t));
  std::mt19937 random(1);
  constexpr std::size_t batches = 20;
  std::vector<ndarray<float, Batch, 784>> xs(batches);
  std::vector<ndarray<std::int32_t, Batch>> ts(batches);
  for (auto& a : xs)
    for (auto& e : a) e = std::uniform_real_distribution<float>()(random);
  for (auto& a : ts)
    for (auto& e : a) e = std::uniform_int_distribution<std::int32_t>(0, 9)(random);
  std::size_t k = 0;
  others.row(str("MLP 784-500-10 ", rule, ", batch ", Batch, ", ", threads,
                 threads == 1 ? " thread" : " threads"),
             str("mlp ", rule, " ", Batch), bench::timed([&] {
               bench::keep(step(xs[k % batches], ts[k % batches]));
               ++k;
             }),
             bound);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string python = bench::python_of(bench::flag(argc, argv, "peers"));
  if (python.empty()) {
    std::fprintf(stderr,
                 "usage: bench_models --peers ENVIRONMENT, as scripts/bench_peers makes it\n");
    return 2;
  }
  for (int threads : {1, 2}) {
    peers others(python, threads);
    if (threads == 1) chain(others);
    mlp<32>(others, threads, "sgd", sgd(0.1), 0.95);
    mlp<100>(others, threads, "sgd", sgd(0.1), 1.0);
    mlp<32>(others, threads, "adagrad", adagrad(0.1), 0.95);
    mlp<100>(others, threads, "adagrad", adagrad(0.1), 0.95);
  }
}
