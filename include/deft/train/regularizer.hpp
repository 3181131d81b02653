// SPDX-License-Identifier: Apache-2.0
// deft/train/regularizer.hpp: penalties for large weights, as a part of the loss.
#pragma once
#include <deft/expr/tensor.hpp>
#include <functional>

namespace deft {

/// Makes a loss, a scalar, of weights: `l2_regularizer(0.001)(w)`. Layers call theirs and add the
/// result to the losses of the graph.
class regularizer {
 public:
  regularizer() = default;
  /// Of a function that returns a floating scalar for the weights:
  /// `regularizer([](const any_tensor& w) { return any_tensor(sum(abs(w)) * 0.01); })`.
  explicit regularizer(std::function<any_tensor(const any_tensor&)> f) : make_(std::move(f)) {}

  /// Whether there is a function: false for the regularizer of layers by default.
  explicit operator bool() const { return static_cast<bool>(make_); }
  /// Throws invalid_argument if `weights` is not floating, or there is no function.
  any_tensor operator()(const any_tensor& weights, ext::source_location w = ext::here()) const;

 private:
  std::function<any_tensor(const any_tensor&)> make_;
};

/// scale * sum(abs(w)). Throws invalid_argument if scale is negative or not finite.
regularizer l1_regularizer(double scale, ext::source_location w = ext::here());
/// scale * sum(w^2) / 2. Throws invalid_argument if scale is negative or not finite.
regularizer l2_regularizer(double scale, ext::source_location w = ext::here());

}  // namespace deft
