// SPDX-License-Identifier: Apache-2.0
// deft/train/schedule.hpp: learning rates that depend on the training step.
#pragma once
#include <cstdint>
#include <deft/train/optimizer.hpp>
#include <vector>

namespace deft {

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

/// values[i] while step <= boundaries[i], and after all boundaries values.back(). Throws
/// invalid_argument if `step` is not a scalar of numbers, the boundaries do not increase, or there
/// is not one value more.
tensor<float> piecewise_constant(const any_tensor& step,
                                 const std::vector<std::int64_t>& boundaries,
                                 const std::vector<double>& values,
                                 ext::source_location w = ext::here());

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

/// rate ((1 - alpha) (1 + cos(pi step / decay_steps)) / 2 + alpha); rate alpha after decay_steps.
/// (Loshchilov, Hutter: SGDR, ICLR 2017, without restarts.) Throws invalid_argument unless `step`
/// is a scalar of numbers, decay_steps finite and above 0, and alpha finite and not negative.
tensor<float> cosine_decay(const hyperparameter& rate, const any_tensor& step, double decay_steps,
                           double alpha = 0, ext::source_location w = ext::here());

/// rate (step + 1) / warmup_steps in the first warmup_steps steps, then rate, which may be another
/// schedule. Throws invalid_argument unless `step` is a scalar of numbers, and warmup_steps finite
/// and above 0.
tensor<float> linear_warmup(const hyperparameter& rate, const any_tensor& step, double warmup_steps,
                            ext::source_location w = ext::here());

}  // namespace deft
