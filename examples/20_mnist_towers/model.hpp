// SPDX-License-Identifier: Apache-2.0
// model.hpp: the variables that towers share, and what each computes of them.
#pragma once
#include <deft/deft.hpp>

struct model {
  deft::variable<float, 784, 128> w1{"w1", deft::truncated_normal(0.05)};
  deft::variable<float, 128> b1{"b1", deft::zeros()};
  deft::variable<float, 128, 10> w2{"w2", deft::truncated_normal(0.05)};
  deft::variable<float, 10> b2{"b2", deft::zeros()};

  deft::any_tensor logits(const deft::any_tensor& x) const {
    return matmul(relu(matmul(x, w1) + b1), w2) + b2;
  }
  /// The loss of a tower: its cross entropy, and the penalties of the weights, which are kept apart
  /// for each tower by its name scope.
  deft::any_tensor loss(const deft::any_tensor& x, const deft::any_tensor& label,
                        const std::string& tower) const {
    const auto penalty = deft::l2_regularizer(0.0001);
    for (const deft::any_variable& w : {deft::any_variable(w1), deft::any_variable(w2)})
      deft::add_loss(penalty(w));
    deft::add_loss(mean(deft::softmax_cross_entropy(logits(x), label)));
    return deft::total_loss(tower);
  }
};
