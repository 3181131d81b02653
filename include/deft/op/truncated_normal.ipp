// SPDX-License-Identifier: Apache-2.0
// deft/op/truncated_normal.ipp: shape rule of truncated_normal.
#pragma once
#include <deft/op/truncated_normal.hpp>

namespace deft {

ext::tensor_type op::truncated_normal::infer(std::span<const ext::tensor_type> in) const {
  ext::tensor_type t = checked(name, in, {stddev});
  if (stddev < 0)
    ext::fail(errc::invalid_argument, "[truncated_normal] the standard deviation ", stddev,
              " is negative");
  return t;
}

any_tensor truncated_normal(const dims& shape, double stddev, dtype type,
                            const random_options& options, ext::source_location w) {
  op::truncated_normal o;
  o.stddev = stddev;
  return detail::random_any(o, shape, type, options, w);
}

}  // namespace deft
