// SPDX-License-Identifier: Apache-2.0
// benchmarks/small.cpp: models and batches so small that starting a step costs more than its
// arithmetic: an agent that acts and learns, and a model that serves single requests. One thread.
//
// bench_small --peers ENVIRONMENT
#include <deft/deft.hpp>
#include <random>

#include "bench.hpp"
#include "peers.hpp"
#include "program.hpp"

namespace {

using namespace deft;
using namespace deft::ext;

const session_options one_thread{.intra_op_threads = 1};

/// A process for each: they compile differently, and answer one kind of work at a time.
std::vector<bench::peer> peers(const std::string& python,
                               const std::vector<std::pair<std::string, std::string>>& kinds) {
  std::vector<bench::peer> all;
  for (const auto& [kind, name] : kinds)
    all.emplace_back(name, std::vector{python, bench::peers_folder() + "/small.py", kind});
  return all;
}

/// A row for each peer; all are measured in the same turns.
void rows(const std::vector<bench::peer>& others, const std::string& work, const std::string& ask,
          const bench::measure& deft) {
  const auto taken = bench::in_turns_with(others, ask, deft, 15);
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (others[i].has_ended()) {
      std::fprintf(stderr, "%s has ended\n", others[i].name().c_str());
      std::exit(1);
    }
    bench::time_row(work, {taken[0], taken[i + 1]}, others[i].name(), {});
  }
}

/// REINFORCE, an update for each action: fetches the probabilities of two actions for an
/// observation, draws one, and trains with what it returned.
void agent(const std::vector<bench::peer>& others, const std::string& rule, const optimizer& by) {
  graph own;
  auto in_own = as_default(own);
  placeholder<float, 1, 4> observation("observation");
  placeholder<std::int32_t, 1> action("action");
  placeholder<float> gain("gain");
  variable<float, 4, 32> w1("w1", random_normal(0, .5));
  variable<float, 32> b1("b1", zeros());
  variable<float, 32, 2> w2("w2", random_normal(0, .2));
  variable<float, 2> b2("b2", zeros());
  auto logits = matmul(tanh(matmul(observation, w1) + b1), w2) + b2;
  auto loss = mean(softmax_cross_entropy(logits, action)) * gain;
  auto train = by.minimize(loss);
  session s(one_thread);
  s.run(initialize_all());
  auto act = s.prepare(softmax(logits), feeds(observation));
  auto learn = s.prepare(loss, train, feeds(observation, action, gain));

  std::mt19937 random(1);
  std::vector<ndarray<float, 1, 4>> seen(20);
  for (auto& a : seen)
    for (auto& e : a) e = std::normal_distribution<float>()(random);
  rows(others, "act and learn, policy 4-32-2, " + rule, "agent " + rule,
       bench::timed([&, k = std::size_t{0}]() mutable {
         const auto& now = seen[k];
         k = (k + 1) % seen.size();
         const ndarray<float, 1, 2> p = act(now);
         ndarray<std::int32_t, 1> drawn;
         drawn(0) = std::uniform_real_distribution<float>()(random) < p(0, 0) ? 0 : 1;
         bench::keep(learn(now, drawn, drawn(0) == 0 ? .01f : -.01f));
       }));
}

/// The answer to one request, of a hidden layer whose width fills whole registers or does not.
template <std::int64_t Units>
void serving(const std::vector<bench::peer>& others) {
  graph own;
  auto in_own = as_default(own);
  placeholder<float, 1, 784> x("x");
  variable<float, 784, Units> w1("w1", random_normal(0, .05));
  variable<float, Units> b1("b1", zeros());
  variable<float, Units, 10> w2("w2", random_normal(0, .05));
  variable<float, 10> b2("b2", zeros());
  auto logits = matmul(relu(matmul(x, w1) + b1), w2) + b2;
  session s(one_thread);
  s.run(initialize_all());
  auto answer = s.prepare(softmax(logits), feeds(x));
  std::mt19937 random(1);
  std::vector<ndarray<float, 1, 784>> requests(20);
  for (auto& a : requests)
    for (auto& e : a) e = std::uniform_real_distribution<float>()(random);
  rows(others, str("serving MLP 784-", Units, "-10, batch 1"), str("serve ", Units),
       bench::timed([&, k = std::size_t{0}]() mutable {
         bench::keep(answer(requests[k]));
         k = (k + 1) % requests.size();
       }));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string python = bench::python_of(bench::flag(argc, argv, "peers"));
  if (python.empty()) {
    std::fprintf(stderr,
                 "usage: bench_small --peers ENVIRONMENT, as scripts/bench_peers makes it\n");
    return 2;
  }
  {
    const auto others =
        peers(python,
              {{"eager", "torch eager"}, {"fused", "torch, fused optimizer"}, {"jax", "jax.jit"}});
    agent(others, "sgd", sgd(0.01));
    agent(others, "adam", adam(0.001));
  }
  const auto others = peers(python, {{"eager", "torch, inference_mode"},
                                     {"script", "TorchScript, frozen"},
                                     {"compile", "torch.compile"},
                                     {"jax", "jax.jit"}});
  serving<100>(others);
  serving<128>(others);
}
