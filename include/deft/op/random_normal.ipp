// SPDX-License-Identifier: Apache-2.0
// deft/op/random_normal.ipp: shape rule of random_normal.
#pragma once
#include <deft/op/random_normal.hpp>

namespace deft {

tensor_type op::random_normal::infer(std::span<const tensor_type> in) const {
  tensor_type t = checked(name, in, {mean, stddev});
  if (stddev < 0)
    fail(errc::invalid_argument, "[random_normal] the standard deviation ", stddev, " is negative");
  return t;
}

any_tensor random_normal(const dims& shape, double mean, double stddev, dtype type,
                         const random_options& options, source_place w) {
  op::random_normal o;
  o.mean = mean;
  o.stddev = stddev;
  return detail::random_any(o, shape, type, options, w);
}

}  // namespace deft
