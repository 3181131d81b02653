// SPDX-License-Identifier: Apache-2.0
// 25_all_reduce.cpp: towers with variables of their own. Each GPU has the whole model and a part of
// the data; all_reduce_mean gives each the mean of all gradients, and so they stay equal without
// anything in the middle (16_towers shares the variables of one GPU instead).
//
//     /gpu:0   w0, x0 ── gradient ──┐             ┌── mean ── update of w0
//     /gpu:1   w1, x1 ── gradient ──┼─ all_reduce ┼── mean ── update of w1
//     …                             │             │
//     /gpu:3   w3, x3 ── gradient ──┘             └── mean ── update of w3
//
// prints: w is 2\.00 -3\.00 0\.50 on each of 4 GPUs
#include <cstdio>
#include <deft/deft.hpp>
#include <string>

using namespace deft;

namespace {

/// A linear model on one GPU, and data that says what its weights should be.
struct tower {
  variable<float, 3, 1> w;
  tensor<float, 3, 1> gradient;

  explicit tower(int number) : w("w" + std::to_string(number), zeros()) {
    auto x = random_normal(shape<64, 3>, 0, 1);
    auto y = matmul(x, constant({{2.f}, {-3.f}, {0.5f}}));
    auto loss = mean(square(matmul(x, w) - y));
    gradient = std::get<0>(deft::gradients(loss, w));
  }
};

}  // namespace

int main() {
  constexpr int gpus = 4;
  std::vector<tower> towers;
  std::vector<tensor<float, 3, 1>> gradients;
  for (int i = 0; i < gpus; ++i) {
    auto there = on(device("/gpu:" + std::to_string(i)));
    towers.emplace_back(i);
    gradients.push_back(towers.back().gradient);
  }

  const auto means = all_reduce_mean(gradients);
  std::vector<operation> updates;
  std::vector<any_tensor> weights;
  for (std::size_t i = 0; i < towers.size(); ++i) {
    updates.push_back(towers[i].w.assign_sub(0.1f * means[i]));
    weights.emplace_back(towers[i].w);
  }

  session found;
  std::size_t real = 0;
  for (const auto& d : found.devices()) real += d.name->type == "gpu";
  session s(real >= gpus ? session_options() : session_options{.simulated_gpus = gpus});
  s.run(initialize_all());
  auto step = s.prepare(group(updates));
  for (int i = 0; i < 100; ++i) step();

  const std::vector<any_array> values = s.run(weights);
  const float* w = values[0].data<float>();
  std::printf("w is %.2f %.2f %.2f", static_cast<double>(w[0]), static_cast<double>(w[1]),
              static_cast<double>(w[2]));
  std::size_t equal = 0;
  for (const any_array& v : values) equal += v == values[0];
  std::printf(" on each of %zu GPUs\n", equal);
  return equal == gpus ? 0 : 1;
}
