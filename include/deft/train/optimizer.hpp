// SPDX-License-Identifier: Apache-2.0
// deft/train/optimizer.hpp: the common part of all optimizers, and the optimizers.
#pragma once
#include <deft/expr/tensor.hpp>
#include <deft/op/global_step.hpp>
#include <memory>
#include <string>
#include <vector>

namespace deft {

namespace detail {
template <class L>
inline constexpr bool may_be_scalar = true;
template <typed_expression L>
inline constexpr bool may_be_scalar<L> = shape_type_of<L>::value.n == 0;
}  // namespace detail

/// A variable and the gradient of the loss with respect to it.
struct gradient_of_variable {
  node_ref variable;
  any_tensor gradient;  ///< empty where the loss does not depend on it
};

/// Computes gradients and updates variables with them. Slots (an optimizer's own variables) are
/// named after their variable. They and the arithmetic of the update are placed on the variable's
/// device, so that only the gradient is transferred.
class optimizer {
 public:
  virtual ~optimizer() = default;

  /// One training step: the operation that updates every trainable float or double variable that
  /// `loss`, a scalar, depends on. Throws invalid_argument if there are none or `loss` is not a
  /// floating scalar, unimplemented if an operation has no gradient.
  template <expression L>
  operation minimize(const L& loss, source_place w = here()) const {
    if constexpr (!detail::may_be_scalar<L>)
      static_assert(
          detail::takes<optimizer, detail::got<L>>,
          "[minimize] expects a scalar loss, and got a tensor: use mean(loss), or sum(loss)");
    return minimize_any(any_tensor(loss), nullptr, w);
  }
  /// The same; it also adds 1 to `step` after the updates.
  template <expression L>
  operation minimize(const L& loss, const variable<std::int64_t>& step,
                     source_place w = here()) const {
    if constexpr (!detail::may_be_scalar<L>)
      static_assert(
          detail::takes<optimizer, detail::got<L>>,
          "[minimize] expects a scalar loss, and got a tensor: use mean(loss), or sum(loss)");
    return minimize_any(any_tensor(loss), &step, w);
  }

  /// First half of minimize: the gradient of `loss` for each trainable float or double variable.
  /// Throws invalid_argument if `loss` is not floating, unimplemented if an operation has no
  /// gradient.
  std::vector<gradient_of_variable> compute_gradients(const any_tensor& loss) const;
  /// Second half of minimize: the operation that updates each variable by its gradient, and then
  /// adds 1 to `step`, unless that is null. Throws invalid_argument if all gradients are empty.
  operation apply_gradients(const std::vector<gradient_of_variable>& gradients,
                            const variable<std::int64_t>* step = nullptr,
                            source_place w = here()) const;

 protected:
  /// The update of one variable.
  virtual operation update(const node_ref& variable, const any_tensor& gradient,
                           source_place w) const = 0;
  /// A variable "name/suffix" on the device of `variable`, with its dtype and shape, filled with
  /// `value`.
  static any_tensor slot(const node_ref& variable, const std::string& suffix, double value,
                         source_place w);

 private:
  operation minimize_any(const any_tensor& loss, const variable<std::int64_t>* step,
                         source_place w) const;
};

/// Gradient descent: v <- v - learning_rate * g.
class sgd : public optimizer {
 public:
  explicit sgd(double learning_rate) : learning_rate_(learning_rate) {}

 protected:
  operation update(const node_ref& variable, const any_tensor& gradient,
                   source_place w) const override;

 private:
  double learning_rate_;
};

/// Adagrad, in TensorFlow's form: a <- a + g * g; v <- v - learning_rate * g / sqrt(a).
/// (Duchi, Hazan, Singer: Adaptive Subgradient Methods, JMLR 12, 2011.)
class adagrad : public optimizer {
 public:
  explicit adagrad(double learning_rate, double initial_accumulator = 0.1)
      : learning_rate_(learning_rate), initial_(initial_accumulator) {}

 protected:
  operation update(const node_ref& variable, const any_tensor& gradient,
                   source_place w) const override;

 private:
  double learning_rate_, initial_;
};

}  // namespace deft
