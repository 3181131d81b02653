// SPDX-License-Identifier: Apache-2.0
// 11_layers/model.cpp: what only writes models includes no more than deft/expr.hpp.
#include "model.hpp"

#include <string>

using namespace deft;

network::network(const std::vector<std::int64_t>& sizes) {
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    auto names = name_scope("layer" + std::to_string(i));  // "layer1/weights", "layer1/bias", …
    layers_.push_back({any_variable("weights", {sizes[i - 1], sizes[i]}, truncated_normal(0.5)),
                       any_variable("bias", {sizes[i]}, zeros())});
  }
}

any_tensor network::operator()(const any_tensor& x) const {
  any_tensor y = x;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    y = matmul(y, layers_[i].weights) + layers_[i].bias;
    if (i + 1 < layers_.size()) y = relu(y);
  }
  return y;
}
