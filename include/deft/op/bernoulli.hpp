// SPDX-License-Identifier: Apache-2.0
// deft/op/bernoulli.hpp: true with a probability.
#pragma once
#include <deft/op/less.hpp>
#include <deft/op/random_uniform.hpp>

namespace deft::op {
struct bernoulli;  ///< uniform numbers that are compared; only messages use this name
}

namespace deft {

/// A tensor of bool, each true with the probability p: whether a uniform float in [0, 1) is below
/// p, so that 0 and 1 are certain. Every run draws new ones, as random_uniform does.
template <std::int64_t... E>
requires detail::is_known<shape_t<E...>> tensor<bool, E...> bernoulli(
    shape_t<E...> s, float p, const random_options& options = {},
    ext::source_location w = ext::here()) {
  return ext::make<op::less>(w, random_uniform<float>(s, 0, 1, options, w), p);
}
/// The same with extents that a run computes: `bernoulli(shape<dyn>, {size_of(x)}, 0.5f)`.
template <std::int64_t... E>
requires(!detail::is_known<shape_t<E...>>) tensor<bool, E...> bernoulli(
    shape_t<E...>, const detail::size_list& n, float p, const random_options& options = {},
    ext::source_location w = ext::here()) {
  return ext::make<op::less>(
      w, detail::random_sized<float, shape_t<E...>>(op::random_uniform(), n, options, w), p);
}
/// The same with a probability for each element, floating.
template <ext::expression P>
auto bernoulli(const P& p, const random_options& options = {},
               ext::source_location w = ext::here()) {
  return ext::make<op::less>(w, random_uniform_like(p, 0, 1, options, w), p);
}

}  // namespace deft
