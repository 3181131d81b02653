// SPDX-License-Identifier: Apache-2.0
// 17_tfrecord.cpp: converts MNIST to TFRecord files of tf.Example, and trains on them. Threads of
// the dataset read and decode the next batches while a step runs.
//
//     mnist ── shard 0 … 3 ── encode ── train-0 … train-3.tfrecord
//                                                              │
//     step ◀── prefetch ◀── batch ◀── shuffle ◀── decode ◀─────┘
//
// --data DIR: the files of MNIST; otherwise deft draws digits. --to DIR: where the records go.
// prints: [0-9]+ images in 4 files
// prints: read [0-9]+ batches, loss 2\.[0-9]+, then [01]\.[0-9]+
// same losses: 0.02
#include <cstdio>

#include "mnist_records.hpp"

using namespace deft;

int main(int argc, char** argv) {
  const task self(argc, argv, {{"to", "folder of the records (mnist_records)"}});
  const mnist_dataset digits = mnist(self.data_dir());
  const std::vector<std::string> files = write_records(digits, self.flag("to", "mnist_records"));
  std::int64_t written = 0, label_sum = 0;
  for (auto& [image, label] : digits) {
    ++written;
    label_sum += label();
  }
  std::printf("%lld images in 4 files\n", static_cast<long long>(written));

  placeholder<float, dyn, 784> x("x");
  placeholder<std::int32_t, dyn> label("label");
  variable<float, 784, 10> w("w", zeros());
  variable<float, 10> b("b", zeros());
  auto loss = mean(softmax_cross_entropy(matmul(x, w) + b, label));
  auto train = adagrad(0.1f).minimize(loss);
  session s;
  s.run(initialize_all());
  auto step = s.prepare(loss, train, feeds(x, label));

  float first = 0, last = 0;
  int batches = 0;
  for (auto& [images, labels] :
       examples(files, image_and_label, {.threads = 2}).shuffle(10'000, 1).batch(100).prefetch(2)) {
    last = step(images, labels);
    if (++batches == 1) first = last;
    written -= labels.size();
    for (std::int32_t l : labels) label_sum -= l;
  }
  std::printf("read %d batches, loss %.2f, then %.2f\n", batches, static_cast<double>(first),
              static_cast<double>(last));
  return written == 0 && label_sum == 0 && last < first ? 0 : 1;
}
