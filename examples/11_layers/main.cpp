// SPDX-License-Identifier: Apache-2.0
// 11_layers/main.cpp: a model in a file of its own, with a depth and sizes that are known only at
// run time. Here they come from the command line: 11_layers 16 16 has two hidden layers of 16.
//
//     model.cpp:  x ── matmul w1, + b1 ── relu ── … ── matmul wN, + bN ── logits
//
//     main.cpp:   logits, label ── softmax_cross_entropy ── mean ── loss ── adagrad
//
// ctest: 16 16
// prints: 3 layers
// same losses: 0.005
// prints: accuracy (0\.9[5-9]|1\.00)
#include <cstdio>
#include <cstdlib>
#include <deft/deft.hpp>

#include "model.hpp"

int main(int argc, char** argv) {
  using namespace deft;
  std::vector<std::int64_t> sizes{2};
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
  sizes.push_back(2);

  // Points of a square, and whether they are within a circle; others in every step.
  auto x = random_uniform(shape<256, 2>, -1.f, 1.f);
  auto label = cast<std::int64_t>(sum(square(x), axis<1>) < 0.6f);

  network model(sizes);
  tensor<float, 256, 2> logits(
      model(x));  // checked here; from here on the compiler knows the shape
  auto loss = mean(softmax_cross_entropy(logits, label));
  auto accuracy = mean(cast<float>(argmax(logits, axis<1>) == label));
  auto train = adagrad(0.2).minimize(loss);

  session s;
  s.run(initialize_all());
  auto step = s.prepare(loss, train);
  for (int i = 0; i < 1000; ++i) {
    float l = step();
    if (i % 200 == 0) std::printf("step %d: loss %.3f\n", i, static_cast<double>(l));
  }
  float right = s.run(accuracy);
  std::printf("%zu layers, accuracy %.2f\n", sizes.size() - 1, static_cast<double>(right));
  return right > 0.95f ? 0 : 1;
}
