// SPDX-License-Identifier: Apache-2.0
// benchmarks/mlp.hpp: trains a 784-500-10 perceptron, as the peers do.
#pragma once
#include <deft/deft.hpp>
#include <functional>
#include <optional>
#include <random>
#include <vector>

namespace bench {

/// A call is a training step: it feeds a batch and fetches the loss. Device scopes apply where it
/// is made.
template <std::int64_t Batch>
class mlp {
 public:
  mlp(const deft::optimizer& rule, const deft::session_options& options) {
    using namespace deft;
    auto in_own = as_default(graph_);
    session_.emplace(options);
    placeholder<float, Batch, 784> x("x");
    placeholder<std::int32_t, Batch> t("t");
    variable<float, 784, 500> w1("w1", random_normal(0, .05));
    variable<float, 500> b1("b1", zeros());
    variable<float, 500, 10> w2("w2", random_normal(0, .05));
    variable<float, 10> b2("b2", zeros());
    auto logits = matmul(relu(matmul(x, w1) + b1), w2) + b2;
    auto loss = mean(softmax_cross_entropy(logits, t));
    auto train = rule.minimize(loss);
    session_->run(initialize_all());
    std::mt19937 random(1);
    constexpr std::size_t batches = 20;
    std::vector<ndarray<float, Batch, 784>> xs(batches);
    std::vector<ndarray<std::int32_t, Batch>> ts(batches);
    for (auto& a : xs)
      for (auto& e : a) e = std::uniform_real_distribution<float>()(random);
    for (auto& a : ts)
      for (auto& e : a) e = std::uniform_int_distribution<std::int32_t>(0, 9)(random);
    step_ = [step = session_->prepare(loss, train, feeds(x, t)), xs = std::move(xs),
             ts = std::move(ts), k = std::size_t{0}]() mutable {
      const float l = step(xs[k], ts[k]);
      k = (k + 1) % batches;
      return l;
    };
  }
  float operator()() { return step_(); }

 private:
  deft::graph graph_;
  std::optional<deft::session> session_;
  std::function<float()> step_;
};

}  // namespace bench
