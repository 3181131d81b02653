// SPDX-License-Identifier: Apache-2.0
// deft/op/logsumexp.ipp: log(sum(exp(x))) in other operations.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/equal.hpp>
#include <deft/op/exp.hpp>
#include <deft/op/isfinite.hpp>
#include <deft/op/log.hpp>
#include <deft/op/logsumexp.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/softmax.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/where.hpp>
#include <limits>

namespace deft {

any_tensor detail::add_logsumexp(const any_tensor& x, const axes* given, bool keep,
                                 ext::source_location w) {
  expect_floating("logsumexp", x, w);
  const ext::location_scope on_behalf(w);
  const axes along(axes_from_front("logsumexp", x, given, w));
  const any_tensor largest = largest_along(x, along, w);
  // Only the range depends on it. What is taken off must be a number.
  const any_tensor base = where(isfinite(largest), largest, 0);
  const any_tensor total = sum(exp(x - base), along, keepdims);
  const any_tensor nothing = total == 0;  // where the logarithm has no gradient
  const any_tensor y =
      where(nothing, -std::numeric_limits<float>::infinity(), log(where(nothing, 1, total)) + base);
  if (keep) return y;
  dims rest;
  for (int i = 0; i < x.rank(); ++i)
    if (const std::int64_t e = x.shape()[i]; !along.value.contains(i))
      rest.push_back(e == dyn ? op::reshape::extent_of(i) : e);
  return add_reshape(y, rest, w);
}

}  // namespace deft
