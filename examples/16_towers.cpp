// SPDX-License-Identifier: Apache-2.0
// 16_towers.cpp: one model on several GPUs. Each has a tower: the model on data of its own, and the
// gradients of its loss. Their mean changes the variables, which the towers share. A machine with
// fewer than two GPUs simulates four.
//
//     w, b ──┬── tower 0 on /gpu:0 ── gradients ──┐
//            ├── tower 1 on /gpu:1 ── gradients ──┼── mean ── update
//            └── …                                │
//
// prints: 2 towers on /gpu:0, /gpu:1: loss [0-9.]+, then 0\.[0-9]+, .* ms a step
#include <chrono>
#include <cstdio>
#include <deft/deft.hpp>
#include <string>

namespace {

using namespace deft;

std::size_t gpus_of(session& s) {
  std::size_t count = 0;
  for (const auto& d : s.devices()) count += d.name->type == "gpu";
  return count;
}

/// Trains with so many towers, and prints how that went.
void train(std::size_t towers, const session_options& options) {
  graph g;
  auto in_graph = as_default(g);
  set_seed(1);
  variable<float, 64, 10> w("w", zeros());
  variable<float, 10> b("b", zeros());
  variable<float, 64, 10> teacher("teacher", random_normal(0, 1), {.trainable = false});

  const sgd optimizer(0.5);
  any_tensor loss;
  std::vector<std::vector<gradient_of_variable>> gradients;
  std::string where;
  for (std::size_t t = 0; t < towers; ++t) {
    auto on_its_gpu = on(device("/gpu:" + std::to_string(t)));
    auto x = random_normal(shape<128, 64>, 0, 1);
    auto label = argmax(matmul(x, teacher), axis<1>);
    any_tensor of_tower = deft::mean(softmax_cross_entropy(matmul(x, w) + b, label));
    gradients.push_back(optimizer.compute_gradients(of_tower));
    const float part = 1 / static_cast<float>(towers);
    loss = t == 0 ? of_tower * part : loss + of_tower * part;
    where += (t ? ", /gpu:" : "/gpu:") + std::to_string(t);
  }

  session s(options);
  s.run(initialize_all());
  auto step =
      s.prepare(tensor<float>(loss), optimizer.apply_gradients(average_gradients(gradients)));
  const float first = step();
  constexpr int steps = 100;
  float last = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) last = step();
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  std::printf("%zu towers on %s: loss %.2f, then %.2f, %.2f ms a step\n", towers, where.c_str(),
              static_cast<double>(first), static_cast<double>(last), taken.count() / steps);
}

}  // namespace

int main() {
  session found;
  const bool real = gpus_of(found) >= 2;
  const session_options options = real ? session_options() : session_options{.simulated_gpus = 4};
  const std::size_t gpus = real ? gpus_of(found) : 4;
  for (std::size_t towers = 1; towers <= gpus; towers *= 2) train(towers, options);
}
