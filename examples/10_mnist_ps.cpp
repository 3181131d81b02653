// SPDX-License-Identifier: Apache-2.0
// 10_mnist_ps.cpp: MNIST on a parameter server and two workers, processes of this one binary.
//
//     /job:ps/task:0            /job:worker/task:0 and 1, each with batches of its own
//
//                               x ── matmul ── + b1, relu ── matmul ── + b2 ── loss ── label
//                                      ▲          ▲            ▲         ▲       │
//     w1 b1 w2 b2 ─── values ──────────┴──────────┴────────────┴─────────┘       │
//       ▲                                                                        ▼
//       └── adagrad ◀─────────────────────────────────────────────────────── gradients
//
// ctest: --steps 300
// prints: w1 +/job:ps/replica:0/task:0/[cg]pu:0
// prints: step 300/300
// prints: accuracy on [0-9]+ held-out images: 0\.[5-9]
#include <cstdio>
#include <deft/deft.hpp>
#include <fstream>

using namespace deft;

/// A worker's whole program; the parameter server only serves.
void run_worker(task& self) {
  const std::int64_t steps = self.flag("steps", 2000);
  const std::string data = self.data_dir(), to = self.flag("save");  // where checkpoints go
  placeholder<float, dyn, 784> x("x");
  placeholder<std::int32_t, dyn> label("label");
  auto scope = on(replica_device(self.cluster(), self.device()));  // variables -> ps, the rest here
  variable<float, 784, 128> w1("w1", truncated_normal(0.05f));
  variable<float, 128> b1("b1", zeros());
  variable<float, 128, 10> w2("w2", truncated_normal(0.05f));
  variable<float, 10> b2("b2", zeros());

  auto hidden = relu(matmul(x, w1) + b1);
  tensor<float, dyn, 10> logits = matmul(hidden, w2) + b2;
  auto loss = mean(softmax_cross_entropy(logits, label));
  auto accuracy = mean(cast<float>(argmax(logits, axis<1>) == cast<std::int64_t>(label)));
  auto step = global_step();
  auto train = adagrad(0.1f).minimize(loss, step);

  monitored_options o{
      .checkpoint_dir = to.empty() ? to : to + "/checkpoints",
      .hooks = {stop_at_step(steps), stop_on_nan(loss), show_progress(loss, steps, 100)}};
  if (!to.empty())
    o.hooks.push_back(save_summaries(to + "/summaries", {scalar_summary("loss", loss)}));
  monitored_session s(self, o);
  if (self.is_chief())
    std::printf("%s\n%s", mnist_source(data).c_str(),
                placements(s.session(), w1, b1, w2, b2, hidden, logits, loss).c_str());

  if (const std::string file = self.flag("dot"); self.is_chief() && !file.empty())
    std::ofstream(file) << to_dot(s.session(), train, x = ndarray<float, dyn, 784>(100),
                                  label = ndarray<std::int32_t, dyn>(100));
  const auto order = static_cast<std::uint64_t>(self.index());  // in which it draws its images
  for (auto& [images, labels] : mnist(data).shuffle(10'000, order).batch(100, true).repeat()) {
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
  return cluster_main(argc, argv, {{"ps", 1}, {"worker", 2}},
                      {{"steps", "2000 unless given"},
                       {"save", "folder of checkpoints and summaries"},
                       {"dot", "file for a drawing of the graph"}},
                      run_worker);
}
