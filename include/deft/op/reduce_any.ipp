// SPDX-License-Identifier: Apache-2.0
// deft/op/reduce_any.ipp: a sum of what is true.
#pragma once
#include <deft/op/cast.hpp>
#include <deft/op/not_equal.hpp>
#include <deft/op/reduce_any.hpp>
#include <deft/op/sum.hpp>

namespace deft {

any_tensor detail::add_reduce_any(const any_tensor& x, const axes* given, bool keep,
                                  ext::source_location w) {
  if (x.type() != dtype::boolean)
    refuse_call(x, ext::str("[reduce_any] expects bool, and got ", x.type()), w);
  const ext::location_scope on_behalf(w);
  const axes over(axes_from_front("reduce_any", x, given, w));
  const any_tensor n = cast(x, dtype::int64);
  return (keep ? sum(n, over, keepdims) : sum(n, over)) != 0;
}

}  // namespace deft
