// SPDX-License-Identifier: Apache-2.0
// deft/op/random_normal.ipp: shape rule of random_normal.
#pragma once
#include <deft/op/random_normal.hpp>

namespace deft {

ext::tensor_type op::random_normal::infer(std::span<const ext::tensor_type> in) const {
  ext::tensor_type t = checked(name, in, {mean, stddev});
  if (stddev < 0)
    ext::fail(errc::invalid_argument, "[random_normal] the standard deviation ", stddev,
              " is negative");
  return t;
}

any_tensor random_normal(const dims& shape, double mean, double stddev, dtype type,
                         const random_options& options, ext::source_location w) {
  op::random_normal o;
  o.mean = mean;
  o.stddev = stddev;
  return detail::random_any(o, shape, type, options, w);
}

}  // namespace deft
