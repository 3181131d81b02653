// SPDX-License-Identifier: Apache-2.0
// tests/cuda/train.ipp: a model of two layers, in each file's unnamed namespace.

std::vector<float> train() {
  using namespace deft;
  using namespace deft::ext;
  graph own;
  graph_scope in = as_default(own);
  set_seed(1);
  placeholder<float, 8, 3> x("x");
  placeholder<float, 8> target("target");
  variable<float, 3, 5> w1("w1", random_normal(0, 0.5));
  variable<float, 5> b1("b1", zeros());
  variable<float, 5, 1> w2("w2", random_normal(0, 0.5));
  auto hidden = relu(matmul(x, w1) * 2 + b1);
  auto y = sigmoid(reshape(matmul(hidden, w2), shape<8>)) - 0.5f;
  auto loss = mean(square(y - target));
  operation first = adagrad(0.1).minimize(loss), second = sgd(0.1).minimize(loss);

  ndarray<float, 8, 3> inputs;
  ndarray<float, 8> wanted;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 3; ++j) inputs(i, j) = static_cast<float>((i * 3 + j) % 7) / 7;
    wanted(i) = static_cast<float>(i % 3 - 1) / 4;
  }
  std::vector<float> seen;
  session s;
  s.run(initialize_all());
  auto measure = s.prepare(loss, feeds(x, target));
  for (int step = 0; step < 20; ++step) {
    s.run(step % 2 ? first : second, x = inputs, target = wanted);
    seen.push_back(measure(inputs, wanted));
  }
  ndarray<float, 3, 5> weights = s.run(w1);
  seen.insert(seen.end(), weights.data(), weights.data() + 15);
  return seen;
}
