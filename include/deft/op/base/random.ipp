// SPDX-License-Identifier: Apache-2.0
// deft/op/base/random.ipp: keys of random tensors, and what their shape rules share.
#pragma once
#include <cmath>
#include <deft/core/hash.hpp>
#include <deft/op/base/random.hpp>

namespace deft {

ext::tensor_type op::random::checked(std::string_view name, std::span<const ext::tensor_type> in,
                                     std::initializer_list<double> parameters) const {
  const dims out = shape_by(name, shape, in);
  if (!ext::is_floating(type))
    ext::fail(errc::invalid_argument, "[", name, "] is not defined for ", type);
  for (double p : parameters)
    if (!std::isfinite(p) || ext::visit_dtype_in<ext::floating_dtypes>(type, [p]<class T>() {
          return std::isinf(static_cast<double>(static_cast<T>(p)));
        }))
      ext::fail(errc::invalid_argument, "[", name, "] ", p, " is not finite as ", type);
  return {out, type};
}

std::uint64_t detail::random_key(const random_options& o) {
  graph& g = current_graph();
  // Tagged, so that an explicit seed is not the number of another operation.
  std::uint64_t own = o.seed ? ext::mix(1, *o.seed) : ext::mix(2, g.next_random());
  return ext::mix(g.seed(), own);
}

}  // namespace deft
