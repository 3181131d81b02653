// SPDX-License-Identifier: Apache-2.0
// 21_restore_and_predict.cpp: a program that trains and saves, and another one that restores what
// it saved and predicts. They share the names of the variables, and nothing else.
//
//     training:   digits ── softmax regression ── sgd ── saver.save ──┐
//                                                                     ▼
//                                                           digits/model-300.*
//     prediction: digit ── softmax regression ◀── saver.restore ──────┘
//
// prints: saved .*digits/model-300
// prints: restored 2 variables
// prints: a [0-9] is taken for a [0-9] \([01]\.[0-9]+\)
// prints: [0-9]+ of 20 are right
#include <cstdio>
#include <deft/deft.hpp>

using namespace deft;

namespace {

struct classifier {
  variable<float, 784, 10> w{"w", zeros()};
  variable<float, 10> b{"b", zeros()};

  tensor<float, dyn, 10> logits(const tensor<float, dyn, 784>& x) const { return matmul(x, w) + b; }
};

void train_and_save(const std::string& data, const std::string& path) {
  graph of_training;
  auto in_graph = as_default(of_training);
  const classifier digits;
  placeholder<float, dyn, 784> x("x");
  placeholder<std::int32_t, dyn> label("label");
  auto train = sgd(0.2).minimize(mean(softmax_cross_entropy(digits.logits(x), label)));

  session s;
  s.run(initialize_all());
  auto step = s.prepare(train, feeds(x, label));
  for (auto& [images, labels] : mnist(data).shuffle(10'000, 1).batch(50, true).repeat().take(300))
    step(images, labels);
  std::printf("saved %s\n", saver().save(s, path, 300).c_str());
}

int restore_and_predict(const std::string& data, const std::string& folder) {
  graph of_prediction;
  auto in_graph = as_default(of_prediction);
  const classifier digits;
  placeholder<float, dyn, 784> x("x");
  tensor<float, dyn, 10> p = softmax(digits.logits(x));
  auto guess = argmax(p, axis<1>);
  auto certainty = max(p, axis<1>);

  session s;  // gives no variable a value
  const auto found = saver().restore(s, latest_checkpoint(folder));
  std::printf("restored %zu variables\n", found.restorable.size());
  int right = 0;
  for (auto& [images, labels] : mnist_test(data).batch(20).take(1)) {
    const auto [guesses, certain] = s.run(guess, certainty, x = images);
    for (int i = 0; i < 20; ++i) {
      if (i < 5)
        std::printf("a %d is taken for a %d (%.2f)\n", static_cast<int>(labels(i)),
                    static_cast<int>(guesses(i)), static_cast<double>(certain(i)));
      right += labels(i) == guesses(i);
    }
  }
  std::printf("%d of 20 are right\n", right);
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  const task self(argc, argv, {{"to", "folder of the checkpoint (digits)"}});
  const std::string folder = self.flag("to", "digits");
  train_and_save(self.data_dir(), folder + "/model");
  return restore_and_predict(self.data_dir(), folder) > 10 ? 0 : 1;
}
