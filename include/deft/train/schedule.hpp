// SPDX-License-Identifier: Apache-2.0
// deft/train/schedule.hpp: learning rates that depend on the training step.
#pragma once
#include <cstdint>
#include <deft/train/optimizer.hpp>
#include <vector>

namespace deft {

namespace op {
struct exponential_decay;  ///< several operations; only messages use these names
struct piecewise_constant;
struct polynomial_decay;
struct cosine_decay;
struct linear_warmup;
}  // namespace op

namespace detail {
/// A number or a function where the training step belongs.
template <class Step>
concept no_step = scalar<Step> || std::is_function_v<Step>;
}  // namespace detail

/// Options of exponential_decay.
struct decay_options {
  bool staircase = false;  ///< the exponent is rounded down: the rate stays for decay_steps steps
};
/// rate decay_rate^(step / decay_steps), for the value that `step`, a scalar such as global_step(),
/// has in a run. As all schedules, it computes in double.
///
///     auto rate = exponential_decay(0.1, global_step(), 1000, 0.96);
///     auto train = sgd(rate).minimize(loss, global_step());
///
/// Throws invalid_argument unless `step` is a scalar of numbers, and decay_steps and decay_rate are
/// finite and above 0.
tensor<float> exponential_decay(const hyperparameter& rate, const any_tensor& step,
                                double decay_steps, double decay_rate, decay_options options = {},
                                ext::source_location w = ext::here());
/// @cond refused
template <ext::operand Rate, detail::no_step Step, class... Given>
detail::refused exponential_decay(const Rate&, const Step&, const Given&...) {
  static_assert(detail::takes<op::exponential_decay, Rate, Step, Given...>,
                "[exponential_decay] expects the training step after the rate: "
                "exponential_decay(0.1, global_step(), 1000, 0.96)");
  return {};
}
template <ext::operand Rate, detail::no_step Step>
detail::refused exponential_decay(const Rate& rate, const Step& step, double, decay_options) {
  return exponential_decay(rate, step, 0);
}
/// @endcond

/// values[i] while step <= boundaries[i], and after all boundaries values.back(). Throws
/// invalid_argument if `step` is not a scalar of numbers, the boundaries do not increase, or there
/// is not one value more.
tensor<float> piecewise_constant(const any_tensor& step,
                                 const std::vector<std::int64_t>& boundaries,
                                 const std::vector<double>& values,
                                 ext::source_location w = ext::here());
/// @cond refused
template <class Values = std::vector<double>>
detail::refused piecewise_constant(const std::vector<std::int64_t>&, const Values&) {
  static_assert(detail::takes<op::piecewise_constant, Values>,
                "[piecewise_constant] expects the training step first: "
                "piecewise_constant(global_step(), {100, 200}, {0.1, 0.01, 0.001})");
  return {};
}
/// @endcond

/// Options of polynomial_decay.
struct polynomial_options {
  double end_rate = 0.0001;  ///< what it reaches after decay_steps; not negative
  double power = 1;          ///< 1: linearly; not negative
  bool cycle = false;        ///< decay_steps is multiplied until it is beyond the step
};
/// (rate - end_rate) (1 - step / decay_steps)^power + end_rate; end_rate after decay_steps. Throws
/// invalid_argument unless `step` is a scalar of numbers, decay_steps finite and above 0, and the
/// options in their ranges.
tensor<float> polynomial_decay(const hyperparameter& rate, const any_tensor& step,
                               double decay_steps, polynomial_options options = {},
                               ext::source_location w = ext::here());
/// @cond refused
template <ext::operand Rate, detail::no_step Step, class... Given>
detail::refused polynomial_decay(const Rate&, const Step&, const Given&...) {
  static_assert(detail::takes<op::polynomial_decay, Rate, Step, Given...>,
                "[polynomial_decay] expects the training step after the rate: "
                "polynomial_decay(0.1, global_step(), 1000)");
  return {};
}
template <ext::operand Rate, detail::no_step Step>
detail::refused polynomial_decay(const Rate& rate, const Step& step, polynomial_options) {
  return polynomial_decay(rate, step, 0);
}
/// @endcond

/// rate ((1 - alpha) (1 + cos(pi step / decay_steps)) / 2 + alpha); rate alpha after decay_steps.
/// (Loshchilov, Hutter: SGDR, ICLR 2017, without restarts.) Throws invalid_argument unless `step`
/// is a scalar of numbers, decay_steps finite and above 0, and alpha finite and not negative.
tensor<float> cosine_decay(const hyperparameter& rate, const any_tensor& step, double decay_steps,
                           double alpha = 0, ext::source_location w = ext::here());
/// @cond refused
template <ext::operand Rate, detail::no_step Step, class... Given>
detail::refused cosine_decay(const Rate&, const Step&, const Given&...) {
  static_assert(detail::takes<op::cosine_decay, Rate, Step, Given...>,
                "[cosine_decay] expects the training step after the rate: cosine_decay(0.1, "
                "global_step(), 1000)");
  return {};
}
/// @endcond

/// rate (step + 1) / warmup_steps in the first warmup_steps steps, then rate, which may be another
/// schedule. Throws invalid_argument unless `step` is a scalar of numbers, and warmup_steps finite
/// and above 0.
tensor<float> linear_warmup(const hyperparameter& rate, const any_tensor& step, double warmup_steps,
                            ext::source_location w = ext::here());
/// @cond refused
template <ext::operand Rate, detail::no_step Step, class... Given>
detail::refused linear_warmup(const Rate&, const Step&, const Given&...) {
  static_assert(detail::takes<op::linear_warmup, Rate, Step, Given...>,
                "[linear_warmup] expects the training step after the rate: linear_warmup(0.1, "
                "global_step(), 1000)");
  return {};
}
/// @endcond

}  // namespace deft
