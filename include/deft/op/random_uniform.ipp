// SPDX-License-Identifier: Apache-2.0
// deft/op/random_uniform.ipp: shape rule of random_uniform.
#pragma once
#include <deft/op/random_uniform.hpp>

namespace deft {

ext::tensor_type op::random_uniform::infer(std::span<const ext::tensor_type> in) const {
  ext::tensor_type t = checked(name, in, {low, high});
  if (low > high)
    ext::fail(errc::invalid_argument, "[random_uniform] the range [", low, ", ", high,
              ") is empty");
  ext::visit_dtype(type, [&]<class T>() {
    if constexpr (is_floating_type<T>) {
      if (!std::isfinite(static_cast<T>(high - low)))
        ext::fail(errc::invalid_argument, "[random_uniform] the range [", low, ", ", high,
                  ") is wider than the largest ", type);
      if (low < high && first<T>() > last<T>())
        ext::fail(errc::invalid_argument, "[random_uniform] no ", type, " lies in [", low, ", ",
                  high, ")");
    }
  });
  return t;
}

any_tensor random_uniform(const dims& shape, double low, double high, dtype type,
                          const random_options& options, ext::source_location w) {
  op::random_uniform o;
  o.low = low;
  o.high = high;
  return detail::random_any(o, shape, type, options, w);
}

}  // namespace deft
