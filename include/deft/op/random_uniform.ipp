// SPDX-License-Identifier: Apache-2.0
// deft/op/random_uniform.ipp: shape rule of random_uniform.
#pragma once
#include <deft/op/random_uniform.hpp>

namespace deft {

tensor_type op::random_uniform::infer(std::span<const tensor_type> in) const {
  tensor_type t = checked(name, {low, high});
  if (low > high)
    fail(errc::invalid_argument, "[random_uniform] the range [", low, ", ", high, ") is empty");
  visit_dtype(type, [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(static_cast<T>(high - low)))
        fail(errc::invalid_argument, "[random_uniform] the range [", low, ", ", high,
             ") is wider than the largest ", type);
      if (low < high && first<T>() > last<T>())
        fail(errc::invalid_argument, "[random_uniform] no ", type, " lies in [", low, ", ", high,
             ")");
    }
  });
  if (in.empty()) return t;
  if (!shape.empty())
    fail(errc::invalid_argument, "[random_uniform] has two shapes: ", shape, " and ", in[0].shape);
  return {in[0].shape, type};
}

any_tensor random_uniform(const dims& shape, double low, double high, dtype type,
                          const random_options& options, source_place w) {
  op::random_uniform o;
  o.low = low;
  o.high = high;
  return detail::random_any(o, shape, type, options, w);
}

any_tensor detail::uniform_like(const any_tensor& like, const random_options& options,
                                source_place w) {
  op::random_uniform o;
  if (like.shape().is_static()) return random_any(o, like.shape(), like.type(), options, w);
  o.type = like.type();
  o.key = random_key(options);
  const output in[] = {like.handle()};
  return apply_any(o, in, w);
}

}  // namespace deft
