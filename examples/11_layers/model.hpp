// SPDX-License-Identifier: Apache-2.0
// 11_layers/model.hpp: dense layers, as many and as wide as their user says at run time.
#pragma once
#include <cstdint>
#include <deft/expr.hpp>
#include <vector>

class network {
 public:
  /// A layer from each size to the next: {2, 16, 2} makes two.
  explicit network(const std::vector<std::int64_t>& sizes);

  /// x (N, first size) -> (N, last size).
  deft::any_tensor operator()(const deft::any_tensor& x) const;

 private:
  struct layer {
    deft::any_variable weights, bias;
  };
  std::vector<layer> layers_;
};
