// SPDX-License-Identifier: Apache-2.0
// benchmarks/towers.cpp: four towers on /gpu:0 … /gpu:3 against one, on simulated GPUs whose
// kernels take a fixed time without taking the processor's: what is measured is whether the GPUs
// work at the same time.
//
// bench_towers [--kernel_us N]
#include <cstdlib>
#include <deft/deft.hpp>
#include <deft/kernels/gpu/simulated/queue.hpp>
#include <optional>
#include <thread>

#include "bench.hpp"

namespace {

using namespace deft;
using namespace deft::ext;

std::chrono::microseconds kernel_time{1000};

/// The time of a training step.
class training {
 public:
  /// `mirrored`: every tower has variables of its own, and all_reduce brings their gradients
  /// together; otherwise they share those of the first GPU.
  training(int towers, bool mirrored) {
    const auto in_graph = as_default(graph_);
    const sgd optimizer(0.01);
    std::vector<std::vector<gradient_of_variable>> gradients;
    std::vector<weights> all;
    for (int t = 0; t < towers; ++t) {
      const auto there = on(device(str("/gpu:", t)));
      if (t == 0 || mirrored) all.emplace_back(t);
      const auto x = random_normal(shape<32, 64>, 0, 1);
      const auto label = argmax(x, axis<1>);
      gradients.push_back(
          optimizer.compute_gradients(all.back().loss(x, label), all.back().variables()));
    }
    operation update;
    if (mirrored) {
      std::vector<operation> updates;
      for (std::size_t v = 0; v < gradients[0].size(); ++v) {
        std::vector<any_tensor> of_towers;
        for (const auto& g : gradients) of_towers.push_back(g[v].gradient);
        const auto means = all_reduce_mean(of_towers);
        for (std::size_t t = 0; t < gradients.size(); ++t) gradients[t][v].gradient = means[t];
      }
      for (const auto& g : gradients) updates.push_back(optimizer.apply_gradients(g));
      update = group(updates);
    } else
      update = optimizer.apply_gradients(average_gradients(gradients));
    session_.emplace(session_options{.simulated_gpus = 4});
    session_->run(initialize_all());
    step_ = [run = session_->prepare(update)] { run(); };
  }

  bench::measure step() { return bench::timed(step_, 0.05); }

 private:
  /// A recurrent net: many kernels, and few gradients to bring together. (A simulated GPU runs each
  /// instruction of a fused node as a kernel.)
  struct weights {
    variable<float, 64, 64> w;
    variable<float, 64> b;
    explicit weights(int tower)
        : w(str("w", tower), truncated_normal(0.05f)), b(str("b", tower), zeros()) {}

    std::vector<any_variable> variables() const { return {w, b}; }
    any_tensor loss(const any_tensor& x, const any_tensor& label) const {
      any_tensor h = x;
      for (int i = 0; i < 16; ++i) h = tanh(matmul(h, w) + b);
      return deft::mean(softmax_cross_entropy(h, label));
    }
  };

  graph graph_;
  std::optional<session> session_;
  std::function<void()> step_;
};

void compare(bool mirrored, const std::string& work) {
  training one(1, mirrored), four(4, mirrored);
  const auto o = bench::in_turns(four.step(), one.step(), 7);
  bench::time_row(work, o, "one tower", bench::at_most(1.3));
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto us = bench::flag(argc, argv, "kernel_us"); !us.empty())
    kernel_time = std::chrono::microseconds(std::atoi(us.c_str()));
  gpu::simulated::simulated_gpus().before_kernel = [] { std::this_thread::sleep_for(kernel_time); };
  const std::string each = bench::time_text(static_cast<double>(kernel_time.count()) * 1e-6);
  compare(false, "4 towers, simulated GPUs, kernels of " + each);
  compare(true, "the same with variables of their own, all_reduce");
}
