// SPDX-License-Identifier: Apache-2.0
// 23_mnist_sync.cpp: MNIST in synchronous steps: a parameter server and three workers. Each step
// applies the mean of two gradients, once; the worker that is last is a backup, whose gradient is
// dropped.
//
//     worker 0 ── gradients ──┐
//     worker 1 ── gradients ──┼── the first two: mean ── adagrad ── w1 b1 w2 b2, on the ps
//     worker 2 ── gradients ──┘                                        │
//        ▲                                                             │
//        └──────────────────────────── next step ──────────────────────┘
//
// ctest: --steps 100
// prints: step 100/100
// prints: accuracy on [0-9]+ held-out images: 0\.[5-9]
#include <cstdio>
#include <deft/deft.hpp>

using namespace deft;

void run_worker(task& self) {
  const std::int64_t steps = self.flag("steps", 1000);
  const std::string data = self.data_dir();
  const int workers = self.cluster().tasks("worker");

  placeholder<float, dyn, 784> x("x");
  placeholder<std::int32_t, dyn> label("label");
  auto scope = on(replica_device(self.cluster(), self.device()));  // variables -> ps, the rest here

  variable<float, 784, 128> w1("w1", truncated_normal(0.05f));
  variable<float, 128> b1("b1", zeros());
  variable<float, 128, 10> w2("w2", truncated_normal(0.05f));
  variable<float, 10> b2("b2", zeros());
  tensor<float, dyn, 10> logits = matmul(relu(matmul(x, w1) + b1), w2) + b2;
  auto loss = mean(softmax_cross_entropy(logits, label));
  auto accuracy = mean(cast<float>(argmax(logits, axis<1>) == cast<std::int64_t>(label)));

  const sync_replicas optimizer(adagrad(0.1), workers > 1 ? workers - 1 : 1, workers);
  auto train = optimizer.minimize(loss, global_step());

  monitored_session s(self, {.hooks = {stop_at_step(steps), show_progress(loss, steps, 100)}});
  // Every worker draws batches in an order of its own.
  const auto seed = static_cast<std::uint64_t>(self.index());
  for (auto& [images, labels] : mnist(data).shuffle(10'000, seed).batch(100, true).repeat()) {
    if (s.should_stop()) break;
    s.run(train, x = images, label = labels);
  }

  if (!self.is_chief()) return;
  for (auto& [images, labels] : mnist_test(data).batch(2000).take(1)) {  // one batch is enough
    const float a = s.session().run(accuracy, x = images, label = labels);
    std::printf("accuracy on %d held-out images: %.4f\n", static_cast<int>(labels.size()), a);
  }
}

int main(int argc, char** argv) {
  return cluster_main(argc, argv, {{"ps", 1}, {"worker", 3}}, {{"steps", "number of steps (1000)"}},
                      run_worker);
}
