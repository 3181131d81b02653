// SPDX-License-Identifier: Apache-2.0
// benchmarks/models.cpp: whole models against their peers, on one thread and on two.
//
// bench_models --peers ENVIRONMENT
#include <deft/deft.hpp>

#include "bench.hpp"
#include "mlp.hpp"
#include "peers.hpp"
#include "program.hpp"

namespace {

using namespace deft;
using namespace deft::ext;

std::vector<bench::peer> peers(const std::string& python, int threads) {
  std::vector<bench::peer> all;
  for (const char* name : {"jax", "torch", "tensorflow"})
    all.emplace_back(name, std::vector{python, bench::peers_folder() + "/models.py",
                                       std::string(name), std::to_string(threads)});
  return all;
}

/// The fastest of the peers counts.
void row(std::vector<bench::peer>& others, const std::string& work, const std::string& ask,
         const bench::measure& deft, double bound) {
  const auto taken = bench::in_turns_with(others, ask, deft, 15);
  for (auto& p : others)
    if (p.has_ended()) {
      std::fprintf(stderr, "%s has ended\n", p.name().c_str());
      std::exit(1);
    }
  const auto best = std::min_element(taken.begin() + 1, taken.end());
  bench::time_row(work, {taken[0], *best},
                  others[static_cast<std::size_t>(best - taken.begin() - 1)].name(),
                  bench::at_most(bound));
}

void chain(std::vector<bench::peer>& others) {
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
    row(others, "1,000 operations on 16 floats, by " + kind, "chain",
        bench::timed([&] { bench::keep(step(vs, ws)); }), 0.4);
  };
  by("tensor<>", tensor<float, 16>(v), w);
  by("any_tensor", any_tensor(v), any_tensor(w));
}

template <std::int64_t Batch>
void mlp(std::vector<bench::peer>& others, int threads, const std::string& rule,
         const optimizer& by, double bound) {
  bench::mlp<Batch> step(by, {.intra_op_threads = threads});
  row(others,
      str("MLP 784-500-10 ", rule, ", batch ", Batch, ", ", threads,
          threads == 1 ? " thread" : " threads"),
      str("mlp ", rule, " ", Batch), bench::timed([&] { bench::keep(step()); }), bound);
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
    auto others = peers(python, threads);
    if (threads == 1) chain(others);
    mlp<32>(others, threads, "sgd", sgd(0.1), 0.95);
    mlp<100>(others, threads, "sgd", sgd(0.1), 1.0);
    mlp<32>(others, threads, "adagrad", adagrad(0.1), 0.95);
    mlp<100>(others, threads, "adagrad", adagrad(0.1), 0.95);
  }
}
