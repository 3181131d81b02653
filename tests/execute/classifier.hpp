// SPDX-License-Identifier: Apache-2.0
// tests/execute/classifier.hpp: a small classifier, trained on devices that the test chooses.
#pragma once
#include <deft/session/session.hpp>
#include <deft/train/optimizers.hpp>
#include <vector>

#include "op/modeling.hpp"

namespace testing {

/// The losses of 12 steps with the two layers on the devices `first` and `second` and batches of
/// changing size; in this process, or on the cluster of `target`.
inline std::vector<float> losses_on(const char* first, const char* second,
                                    const deft::session_options& options = {},
                                    const std::string& target = "") {
  using namespace deft;
  const own_graph own;
  set_seed(7);
  placeholder<float, dyn, 12> x("x");
  placeholder<std::int32_t, dyn> label("label");
  auto scope = on(device(first));
  variable<float, 12, 16> w1("w1", truncated_normal(0.5f));
  variable<float, 16> b1("b1", zeros());
  auto hidden = relu(matmul(x, w1) + b1);
  auto there = on(device(second));
  variable<float, 16, 5> w2("w2", truncated_normal(0.5f));
  variable<float, 5> b2("b2", zeros());
  tensor<float, dyn, 5> logits = matmul(hidden, w2) + b2;
  auto loss = mean(softmax_cross_entropy(logits, label));
  auto step = adagrad(0.1f).minimize(loss);
  session s = target.empty() ? session(options) : session(target, options);
  s.run(initialize_all());
  std::vector<float> losses;
  for (int i = 0; i < 12; ++i) {
    const int n = 3 + 4 * (i % 3);
    ndarray<float, dyn, 12> images(n);
    ndarray<std::int32_t, dyn> labels(n);
    for (int r = 0; r < n; ++r) {
      for (int c = 0; c < 12; ++c) images(r, c) = static_cast<float>((r * 7 + c * 3 + i) % 11) / 11;
      labels(r) = (r + i) % 5;
    }
    losses.push_back(s.run(loss, step, x = images, label = labels));
  }
  return losses;
}

}  // namespace testing
