// SPDX-License-Identifier: Apache-2.0
// 19_lstm.cpp: an LSTM learns to remember: from sequences of random symbols, drawn here, it tells
// the first one after the last has been read.
//
//     symbols ── one_hot ── x₀ … x₁₅        (batch, 16 steps, 4 symbols)
//                           │     │
//              0 ── cell ── h₀ …  h₁₅ ── dense ── logits ── loss
//                    ▲                              ▲
//                    └── kernel, bias    first symbol ┘
//
// same losses: 0.01
// prints: of 256 new sequences, the first symbol of 2[45][0-9] was told
#include <array>
#include <cstdio>
#include <deft/deft.hpp>
#include <random>

using namespace deft;
constexpr int batch = 64, steps = 16, symbols = 4, units = 24;

// Sequences, and the first symbol of each.
std::pair<ndarray<std::int32_t, dyn, steps>, ndarray<std::int32_t, dyn>> draw(
    int n, std::mt19937& random) {
  ndarray<std::int32_t, dyn, steps> sequences(n);
  ndarray<std::int32_t, dyn> first(n);
  for (int i = 0; i < n; ++i) {
    for (int t = 0; t < steps; ++t) sequences(i, t) = static_cast<int>(random() % symbols);
    first(i) = sequences(i, 0);
  }
  return {std::move(sequences), std::move(first)};
}

int main() {
  set_seed(1);
  placeholder<std::int32_t, dyn, steps> sequence("sequence");
  placeholder<std::int32_t, dyn> first("first");

  auto [outputs, state] = lstm<units>(one_hot<symbols>(sequence), "lstm");
  tensor<float, dyn, symbols> logits = dense<symbols>(state.h, "readout");
  tensor<float> loss = mean(softmax_cross_entropy(logits, first));
  tensor<std::int64_t> told =
      sum(cast<std::int64_t>(argmax(logits, axis<1>) == cast<std::int64_t>(first)));

  // Steps of training grow no longer than a norm of 1, however steep the loss is.
  const adam optimizer(0.01);
  operation train =
      optimizer.apply_gradients(clip_by_global_norm(optimizer.compute_gradients(loss), 1));

  session s;
  s.run(initialize_all());
  auto step = s.prepare(loss, train, feeds(sequence, first));
  std::mt19937 random(7);
  for (int i = 0; i <= 300; ++i) {
    auto [x, y] = draw(batch, random);
    const float l = step(x, y);
    if (i % 50 == 0) std::printf("step %d: loss %.4f\n", i, static_cast<double>(l));
  }

  auto [x, y] = draw(256, random);
  const std::int64_t right = s.run(told, sequence = x, first = y);
  std::printf("of 256 new sequences, the first symbol of %d was told\n", static_cast<int>(right));
  return right >= 240 ? 0 : 1;
}
