// SPDX-License-Identifier: Apache-2.0
// deft/op/sum_to.ipp: shape rule of sum_to, and the sum that it is where the extents are known.
#pragma once
#include <deft/op/base/reduction.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/sum_to.hpp>

namespace deft {

ext::tensor_type op::sum_to::infer(std::span<const ext::tensor_type> in) const {
  if (!ext::is_numeric(in[0].type))
    ext::fail(errc::invalid_argument, "[sum_to] is not defined for ", in[0].type);
  if (!possible(in[0].shape, in[1].shape))
    ext::fail(errc::invalid_argument, "[sum_to] ", in[1].shape, " cannot be broadcast to ",
              in[0].shape);
  return {in[1].shape, in[0].type};
}

namespace detail {

any_tensor sum_like(const any_tensor& x, const any_tensor& like, source_location w) {
  const dims &from = x.shape(), &to = like.shape();
  if (same(x, like) || (from == to && from.is_static())) return x;
  // Axes that are summed; an extent known only at run time may be 1 or not.
  bool decided = op::sum_to::possible(from, to);
  dims summed;
  int front = from.rank() - to.rank();
  for (int i = 0; decided && i < from.rank(); ++i) {
    if (i < front || (to[i - front] == 1 && from[i] != 1))
      summed.push_back(i);
    else if (to[i - front] == dyn && from[i] != 1)
      decided = false;
  }
  const output in[] = {x.handle(), like.handle()};
  if (!decided) return apply_any(op::sum_to{}, in, w);
  const axes over(summed);
  any_tensor s = summed.empty() ? x : add_reduction(record_of<op::sum>, x, &over, false, w);
  dims ones;
  for (auto a : summed)
    if (a >= front) ones.push_back(a - front);
  if (!ones.empty()) s = expand(s, ones, w);
  return s;
}

}  // namespace detail
}  // namespace deft
