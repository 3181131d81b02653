// SPDX-License-Identifier: Apache-2.0
// 18_mnist_conv.cpp: a convolutional net (LeNet with relu) on MNIST. Extents are part of the types,
// so a layer that does not fit the one before it does not compile.
//
//     x ── conv 5x5 ── max_pool ── conv 5x5 ── max_pool ── dense ── dense ── loss ◀── label
//   28x28     32        14x14         64          7x7       512      10       │
//             ▲                        ▲                     ▲        ▲       ▼
//             └────────────────────────┴────── adam ◀────────┴────────┴── gradients
//
// ctest: --steps 14 --batch 32 --test 100
// prints: step 14/14
// same losses: 0.02
// prints: accuracy on 100 held-out images: 0\.[2-9]
#include <cstdio>
#include <deft/deft.hpp>

using namespace deft;

int main(int argc, char** argv) {
  task self(argc, argv,
            {{"steps", "number of steps (1200)"},
             {"batch", "images of a step (64)"},
             {"test", "images to test with (10,000)"}});
  const std::int64_t steps = self.flag("steps", 1200), batch = self.flag("batch", 64);
  const std::int64_t test = self.flag("test", 10'000);
  const std::string data = self.data_dir();
  std::printf("%s\n", mnist_source(data).c_str());

  placeholder<float, dyn, 784> x("x");
  placeholder<std::int32_t, dyn> label("label");
  variable<float, 5, 5, 1, 32> w1("w1", truncated_normal(0.1));
  variable<float, 32> b1("b1", zeros());
  variable<float, 5, 5, 32, 64> w2("w2", truncated_normal(0.05));
  variable<float, 64> b2("b2", zeros());
  variable<float, 7 * 7 * 64, 512> w3("w3", truncated_normal(0.025));
  variable<float, 512> b3("b3", zeros());
  variable<float, 512, 10> w4("w4", truncated_normal(0.05));
  variable<float, 10> b4("b4", zeros());

  auto image = reshape(x, shape<dyn, 28, 28, 1>);
  auto first = max_pool(relu(conv2d(image, w1, padding::same) + b1), window<2>);
  auto second = max_pool(relu(conv2d(first, w2, padding::same) + b2), window<2>);
  auto hidden = relu(matmul(reshape(second, shape<dyn, 7 * 7 * 64>), w3) + b3);
  tensor<float, dyn, 10> logits = matmul(hidden, w4) + b4;
  auto loss = mean(softmax_cross_entropy(logits, label));
  auto right = sum(cast<float>(argmax(logits, axis<1>) == cast<std::int64_t>(label)));
  auto train = adam(0.001).minimize(loss, global_step());

  monitored_session s(
      self, {.hooks = {stop_at_step(steps), stop_on_nan(loss), show_progress(loss, steps, 100)}});
  for (auto& [images, labels] : mnist(data).shuffle(10'000, 1).batch(batch, true).repeat()) {
    if (s.should_stop()) break;
    s.run(train, x = images, label = labels);
  }

  float correct = 0, count = 0;
  for (auto& [images, labels] : mnist_test(data).take(test).batch(500)) {
    correct += s.session().run(right, x = images, label = labels);
    count += static_cast<float>(labels.size());
  }
  const double accuracy = static_cast<double>(correct / count);
  std::printf("accuracy on %.0f held-out images: %.4f\n", static_cast<double>(count), accuracy);
  return accuracy > 0.2 ? 0 : 1;
}
