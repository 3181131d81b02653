// SPDX-License-Identifier: Apache-2.0
// deft/train/schedule.ipp: rates as expressions of the step.
#pragma once
#include <algorithm>
#include <cmath>
#include <deft/op/catalog.hpp>
#include <deft/train/schedule.hpp>
#include <numbers>

namespace deft {
namespace {

[[noreturn]] void refuse(std::string_view schedule, const std::string& what,
                         ext::source_location w) {
  throw error(errc::invalid_argument, ext::str("[", schedule, "] ", what), {}, w);
}

any_tensor step_of(std::string_view schedule, const any_tensor& step, ext::source_location w) {
  if (!step.valid()) refuse(schedule, "the step is an empty tensor", w);
  if (step.rank() != 0 || !ext::is_numeric(step.type()))
    refuse(schedule,
           ext::str("expects a scalar of numbers as the step, and got ", step.handle().type()), w);
  return cast(step, dtype::float64);
}

void expect_positive(std::string_view schedule, std::string_view what, double steps,
                     ext::source_location w) {
  if (!(steps > 0) || std::isinf(steps))
    refuse(schedule, ext::str("expects ", what, " above 0, and got ", steps), w);
}

void expect_from_0(std::string_view schedule, std::string_view what, double x,
                   ext::source_location w) {
  if (!(x >= 0) || std::isinf(x))
    refuse(schedule, ext::str("expects ", what, " from 0, and got ", x), w);
}

tensor<float> as_rate(const any_tensor& rate) { return tensor<float>(cast(rate, dtype::float32)); }

}  // namespace

tensor<float> exponential_decay(const hyperparameter& rate, const any_tensor& step,
                                double decay_steps, double decay_rate, decay_options options,
                                ext::source_location w) {
  const ext::location_scope on_behalf(w);
  expect_positive("exponential_decay", "decay_steps", decay_steps, w);
  expect_positive("exponential_decay", "decay_rate", decay_rate, w);
  const any_tensor now = step_of("exponential_decay", step, w);
  const auto in_graph = as_default(graph_of(step));
  any_tensor exponent = now / decay_steps;
  if (options.staircase) exponent = floor(exponent);
  return as_rate(rate.as(dtype::float64) * pow(decay_rate, exponent));
}

tensor<float> piecewise_constant(const any_tensor& step,
                                 const std::vector<std::int64_t>& boundaries,
                                 const std::vector<double>& values, ext::source_location w) {
  const ext::location_scope on_behalf(w);
  if (values.size() != boundaries.size() + 1)
    refuse("piecewise_constant",
           ext::str("expects a value more than boundaries, and got ", values.size(), " values and ",
                    boundaries.size(), " boundaries"),
           w);
  if (!std::ranges::is_sorted(boundaries, std::less_equal()))
    refuse("piecewise_constant",
           ext::str("expects boundaries that increase, and got ", ext::join(boundaries, ", ")), w);
  const any_tensor now = step_of("piecewise_constant", step, w);
  const auto in_graph = as_default(graph_of(step));
  any_tensor rate = hyperparameter(values.back()).as(dtype::float64);
  for (std::size_t i = boundaries.size(); i-- > 0;)
    rate = where(now <= static_cast<double>(boundaries[i]), values[i], rate);
  return as_rate(rate);
}

tensor<float> polynomial_decay(const hyperparameter& rate, const any_tensor& step,
                               double decay_steps, polynomial_options options,
                               ext::source_location w) {
  const ext::location_scope on_behalf(w);
  expect_positive("polynomial_decay", "decay_steps", decay_steps, w);
  expect_from_0("polynomial_decay", "a power", options.power, w);
  expect_from_0("polynomial_decay", "an end_rate", options.end_rate, w);
  const any_tensor now = step_of("polynomial_decay", step, w);
  const auto in_graph = as_default(graph_of(step));
  const any_tensor whole = options.cycle
                               ? any_tensor(maximum(-floor(now / -decay_steps), 1) * decay_steps)
                               : hyperparameter(decay_steps).as(dtype::float64);
  const any_tensor left = 1 - minimum(now, whole) / whole;
  const any_tensor shape = options.power == 1 ? left : any_tensor(pow(left, options.power));
  return as_rate((rate.as(dtype::float64) - options.end_rate) * shape + options.end_rate);
}

tensor<float> cosine_decay(const hyperparameter& rate, const any_tensor& step, double decay_steps,
                           double alpha, ext::source_location w) {
  const ext::location_scope on_behalf(w);
  expect_positive("cosine_decay", "decay_steps", decay_steps, w);
  expect_from_0("cosine_decay", "an alpha", alpha, w);
  const any_tensor now = step_of("cosine_decay", step, w);
  const auto in_graph = as_default(graph_of(step));
  const any_tensor part = minimum(now, decay_steps) * (std::numbers::pi / decay_steps);
  return as_rate(rate.as(dtype::float64) * ((cos(part) + 1) * ((1 - alpha) / 2) + alpha));
}

tensor<float> linear_warmup(const hyperparameter& rate, const any_tensor& step, double warmup_steps,
                            ext::source_location w) {
  const ext::location_scope on_behalf(w);
  expect_positive("linear_warmup", "warmup_steps", warmup_steps, w);
  const any_tensor now = step_of("linear_warmup", step, w);
  const auto in_graph = as_default(graph_of(step));
  const any_tensor part = (now + 1) / warmup_steps;
  return as_rate(rate.as(dtype::float64) * minimum(part, 1));
}

}  // namespace deft
