// SPDX-License-Identifier: Apache-2.0
// deft/train/optimizers.hpp: the optimizers. Formulas are of one element: v is the variable, g its
// gradient, r the learning rate; other letters are slots, which keep their values between steps.
#pragma once
#include <deft/train/optimizer.hpp>

namespace deft {

namespace detail {
/// Whether `N` numbers, tensors or texts or more stand where an optimizer takes options, or none
/// where it takes a rate.
template <std::size_t N, class... Given>
inline constexpr bool numbers_for_options = sizeof...(Given) == 0 ||
                                            (sizeof...(Given) >= N &&
                                             ((operand<Given> || text<Given>)&&...));
}  // namespace detail

/// Gradient descent: v <- v - r g.
class sgd : public optimizer {
 public:
  /// The rate is a number or a scalar tensor: `sgd(0.1)`,
  /// `sgd(cosine_decay(0.1, global_step(), 10'000))`.
  explicit sgd(hyperparameter learning_rate) : rate_(std::move(learning_rate)) {}
  /// @cond refused
  template <class... Given>
  requires(detail::numbers_for_options<2, Given...>) explicit sgd(const Given&...) {
    static_assert(detail::takes<sgd, Given...>,
                  "[sgd] expects a learning rate alone: sgd(0.1); momentum(0.1, 0.9) has momentum");
  }
  /// @endcond

 protected:
  operation update(const update_target& v, const any_tensor& gradient) const override;
  operation update_rows(const any_variable& v, const any_tensor& indices,
                        const any_tensor& rows) const override;

 private:
  hyperparameter rate_ = 0;
};

/// Options of momentum.
struct momentum_options {
  bool nesterov = false;  ///< v <- v - r (g + momentum a) instead, with the new a
};
/// Gradient descent with momentum: a <- momentum a + g; v <- v - r a. The slot is "momentum", 0 at
/// first. (Sutskever, Martens, Dahl, Hinton: On the importance of initialization and momentum in
/// deep learning, ICML 2013, in TensorFlow's form.)
class momentum : public optimizer {
 public:
  /// `momentum_of_steps` is the formula's momentum: `momentum(0.01, 0.9, {.nesterov = true})`.
  momentum(hyperparameter learning_rate, hyperparameter momentum_of_steps,
           momentum_options options = {})
      : rate_(std::move(learning_rate)), kept_(std::move(momentum_of_steps)), options_(options) {}
  /// @cond refused
  template <class... Given>
  requires(sizeof...(Given) != 2 &&
           detail::numbers_for_options<1, Given...>) explicit momentum(const Given&...) {
    static_assert(detail::takes<momentum, Given...>,
                  "[momentum] expects a learning rate and a momentum, and options: momentum(0.01, "
                  "0.9), momentum(0.01, 0.9, {.nesterov = true})");
  }
  /// @endcond

 protected:
  operation update(const update_target& v, const any_tensor& gradient) const override;

 private:
  hyperparameter rate_ = 0, kept_ = 0;
  momentum_options options_;
};

/// Adagrad, in TensorFlow's form: a <- a + g²; v <- v - r g / sqrt(a). The slot is "adagrad".
/// (Duchi, Hazan, Singer: Adaptive Subgradient Methods, JMLR 12, 2011.)
class adagrad : public optimizer {
 public:
  /// `initial_accumulator` is the first value of a. Minimize throws invalid_argument unless it is
  /// above 0.
  explicit adagrad(hyperparameter learning_rate, double initial_accumulator = 0.1)
      : rate_(std::move(learning_rate)), initial_(initial_accumulator) {}
  /// @cond refused
  template <class... Given>
  requires(detail::numbers_for_options<3, Given...>) explicit adagrad(const Given&...) {
    static_assert(detail::takes<adagrad, Given...>,
                  "[adagrad] expects a learning rate, and the first value of its accumulator: "
                  "adagrad(0.1), adagrad(0.1, 0.1)");
  }
  /// @endcond

 protected:
  operation update(const update_target& v, const any_tensor& gradient) const override;

 private:
  hyperparameter rate_ = 0;
  double initial_ = 0;
};

/// Options of adadelta: minimize throws invalid_argument unless 0 <= rho < 1 and epsilon > 0.
struct adadelta_options {
  double rho = 0.95;      ///< how much of the averages a step keeps
  double epsilon = 1e-8;  ///< added before roots are taken
};
/// Adadelta: a <- rho a + (1 - rho) g²; u = g sqrt(d + epsilon) / sqrt(a + epsilon);
/// d <- rho d + (1 - rho) u²; v <- v - r u. The slots are "adadelta/accumulator" and
/// "adadelta/update", 0 at first. (Zeiler: ADADELTA, arXiv:1212.5701.)
class adadelta : public optimizer {
 public:
  /// The rate is that of TensorFlow by default; the paper has none, which is a rate of 1.
  /// @{
  explicit adadelta(hyperparameter learning_rate = 0.001, adadelta_options options = {})
      : rate_(std::move(learning_rate)), options_(options) {}
  explicit adadelta(adadelta_options options) : adadelta(0.001, options) {}
  /// @}
  /// @cond refused
  template <class... Given>
  requires(sizeof...(Given) > 0 &&
           detail::numbers_for_options<2, Given...>) explicit adadelta(const Given&...) {
    static_assert(detail::takes<adadelta, Given...>,
                  "[adadelta] expects a learning rate and options: adadelta(1, {.rho = 0.95, "
                  ".epsilon = 1e-8})");
  }
  /// @endcond

 protected:
  operation update(const update_target& v, const any_tensor& gradient) const override;

 private:
  hyperparameter rate_ = 0;
  adadelta_options options_;
};

/// Options of rmsprop: minimize throws invalid_argument unless 0 <= decay < 1, momentum >= 0 and
/// epsilon > 0.
struct rmsprop_options {
  double decay = 0.9;      ///< how much of the averages a step keeps
  double momentum = 0;     ///< how much of the last step is taken again
  double epsilon = 1e-10;  ///< added before the root is taken
  bool centered = false;   ///< divides by the gradient's standard deviation instead
};
/// RMSProp, in TensorFlow's form: s <- decay s + (1 - decay) g²;
/// m <- momentum m + r g / sqrt(s + epsilon); v <- v - m. Centered, it also keeps
/// c <- decay c + (1 - decay) g, and divides by sqrt(s - c² + epsilon). The slots are
/// "rmsprop/square", 1 at first, "rmsprop/momentum" if there is momentum, and "rmsprop/mean" if it
/// is centered, both 0 at first. (Tieleman, Hinton: lecture 6.5 of Neural Networks for Machine
/// Learning, 2012; centered: Graves, arXiv:1308.0850.)
class rmsprop : public optimizer {
 public:
  /// The rate is a number or a scalar tensor: `rmsprop(0.001, {.momentum = 0.9})`.
  explicit rmsprop(hyperparameter learning_rate, rmsprop_options options = {})
      : rate_(std::move(learning_rate)), options_(options) {}
  /// @cond refused
  template <class... Given>
  requires(detail::numbers_for_options<2, Given...>) explicit rmsprop(const Given&...) {
    static_assert(detail::takes<rmsprop, Given...>,
                  "[rmsprop] expects a learning rate and options: rmsprop(0.001, {.decay = 0.9, "
                  ".momentum = 0.9, .epsilon = 1e-10})");
  }
  /// @endcond

 protected:
  operation update(const update_target& v, const any_tensor& gradient) const override;

 private:
  hyperparameter rate_ = 0;
  rmsprop_options options_;
};

/// Options of adam: minimize throws invalid_argument unless 0 <= beta1 < 1, 0 <= beta2 < 1, and the
/// others are not negative.
struct adam_options {
  double beta1 = 0.9;       ///< how much of the mean a step keeps
  double beta2 = 0.999;     ///< how much of the mean square a step keeps
  double epsilon = 1e-8;    ///< added to the divisor; if it is 0, nothing moves where s is 0
  double weight_decay = 0;  ///< r times this part of v is subtracted, too (AdamW)
};
/// Adam, in the form at the end of its section 2: in step t
/// m <- m + (1 - beta1) (g - m); s <- s + (1 - beta2) (g² - s);
/// v <- v - r sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(s) + epsilon). The slots are "adam/mean"
/// and "adam/square", 0 at first, and "adam/beta1_power" and "adam/beta2_power", scalars of double
/// that hold the powers: t counts the updates of this variable. (Kingma, Ba: Adam, ICLR 2015.)
class adam : public optimizer {
 public:
  /// The rate is a number or a scalar tensor: `adam(0.01)`, `adam({.beta1 = 0.5})`.
  /// @{
  explicit adam(hyperparameter learning_rate = 0.001, adam_options options = {})
      : rate_(std::move(learning_rate)), options_(options) {}
  explicit adam(adam_options options) : adam(0.001, options) {}
  /// @}
  /// @cond refused
  template <class... Given>
  requires(sizeof...(Given) > 0 &&
           detail::numbers_for_options<2, Given...>) explicit adam(const Given&...) {
    static_assert(detail::takes<adam, Given...>,
                  "[adam] expects a learning rate and options: adam(0.001, {.beta1 = 0.9, .beta2 = "
                  "0.999, .epsilon = 1e-8})");
  }
  /// @endcond

 protected:
  operation update(const update_target& v, const any_tensor& gradient) const override;

 private:
  hyperparameter rate_ = 0;
  adam_options options_;
};

/// Adam with decoupled weight decay: v loses r `weight_decay` v, too, of its value before the step.
/// (Loshchilov, Hutter: Decoupled Weight Decay Regularization, ICLR 2019.)
class adamw : public adam {
 public:
  /// `weight_decay` counts, and not that of `options`: `adamw(0.001, 0.05)`.
  explicit adamw(hyperparameter learning_rate = 0.001, double weight_decay = 0.01,
                 adam_options options = {})
      : adam(std::move(learning_rate), with(options, weight_decay)) {}
  /// @cond refused
  template <class... Given>
  requires(sizeof...(Given) > 0 &&
           detail::numbers_for_options<3, Given...>) explicit adamw(const Given&...) {
    static_assert(detail::takes<adamw, Given...>,
                  "[adamw] expects a learning rate, a weight decay and options: adamw(0.001, 0.01, "
                  "{.beta1 = 0.9})");
  }
  /// @endcond

 private:
  static adam_options with(adam_options o, double weight_decay) {
    o.weight_decay = weight_decay;
    return o;
  }
};

/// Options of ftrl: minimize throws invalid_argument for one out of its range.
struct ftrl_options {
  double power = -0.5;               ///< of the accumulator, in the rate; at most 0
  double initial_accumulator = 0.1;  ///< positive
  /// Regularization, not negative.
  /// @{
  double l1 = 0, l2 = 0;
  /// @}
};
/// FTRL-Proximal: n' = n + g²; z <- z + g - (n'^-power - n^-power) / r v; n <- n'; v <- 0 where
/// |z| <= l1, else (sign(z) l1 - z) / (n^-power / r + 2 l2). The slots are "ftrl/accumulator" and
/// "ftrl/linear", 0 at first. The rate is above 0; in a step where a tensor makes it 0, only n
/// moves. (McMahan et al.: Ad Click Prediction, KDD 2013, in TensorFlow's form.)
class ftrl : public optimizer {
 public:
  /// Minimize throws invalid_argument if the rate is a number and not above 0.
  explicit ftrl(hyperparameter learning_rate, ftrl_options options = {})
      : rate_(std::move(learning_rate)), options_(options) {}
  /// @cond refused
  template <class... Given>
  requires(detail::numbers_for_options<2, Given...>) explicit ftrl(const Given&...) {
    static_assert(detail::takes<ftrl, Given...>,
                  "[ftrl] expects a learning rate and options: ftrl(0.1, {.l1 = 0.1, .l2 = 0.1})");
  }
  /// @endcond

 protected:
  operation update(const update_target& v, const any_tensor& gradient) const override;

 private:
  hyperparameter rate_ = 0;
  ftrl_options options_;
};

}  // namespace deft
