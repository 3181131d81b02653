// SPDX-License-Identifier: Apache-2.0
// deft/op/stack.ipp: a stack as a concat.
#pragma once
#include <deft/op/stack.hpp>

namespace deft {

any_tensor stack(const axes& axis, std::span<const any_tensor> parts, ext::source_location w) {
  if (parts.empty() || axis.value.size() != 1)
    throw error(errc::invalid_argument,
                ext::str("[stack] expects one axis and one tensor at least, and got ",
                         axis.value.size(), " and ", parts.size()),
                "stack", w);
  return detail::add_stack(axis.value[0], parts, w);
}

any_tensor detail::add_stack(std::int64_t axis, std::span<const any_tensor> parts,
                             ext::source_location w) {
  const any_tensor& first = parts[0];
  const int front = ext::normalize_axis(axis, first.rank() + 1);
  if (front < 0 || first.rank() == max_rank)
    refuse_call(first,
                ext::str("[stack] expects an axis of a result of rank ", first.rank() + 1,
                         ", at most 8, and got ", axis),
                w);
  std::vector<ext::output> expanded;
  for (const any_tensor& p : parts) {
    if (p.type() != first.type() || !ext::may_equal(p.shape(), first.shape()))
      refuse_call(p,
                  ext::str("[stack] expects tensors of one dtype and shape, and got ",
                           first.handle().type(), " and ", p.handle().type()),
                  w);
    expanded.push_back(expand(p, {front}, w).handle());
  }
  return add_concat(front, expanded, w);
}

}  // namespace deft
