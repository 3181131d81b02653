// SPDX-License-Identifier: Apache-2.0
// deft/op/base/reduction.ipp: shape rule and axes of reductions, and the gradient of a sum.
#pragma once
#include <deft/op/base/reduction.hpp>
#include <deft/op/broadcast_to.hpp>
#include <deft/op/reshape.hpp>

namespace deft {

dims op::reduction::shape_checked(std::string_view of, const dims& x) const {
  dims sorted;
  if (!normalize_axes(axes, x.rank(), sorted) || !(sorted == axes))
    ext::fail(errc::invalid_argument, "[", of, "] expects axes of a tensor of rank ", x.rank(),
              ", ascending and each once, and got ", ext::list_text(axes));
  return shape(x);
}

namespace detail {

dims axes_from_front(std::string_view name, const any_tensor& x, const axes* given,
                     source_location w) {
  if (!given) return op::all_axes_of(x.rank());
  dims out;
  if (!op::normalize_axes(given->value, x.rank(), out))
    refuse_call(x,
                str("[", name, "] expects axes of a tensor of rank ", x.rank(),
                    ", each once, and got ", list_text(given->value)),
                w);
  return out;
}

any_tensor add_reduction(const op_def& def, const any_tensor& x, const axes* given, bool keep,
                         source_location w) {
  // In float, so that what is reduced can be computed where it is.
  if (is_half(x.type()))
    return cast(add_reduction(def, cast(x, dtype::float32, w), given, keep, w), x.type(), w);
  const output in[] = {x.handle()};
  return add_node(def, encode(op::reduction{axes_from_front(def.name, x, given, w), keep}), in, w);
}

any_tensor spread(const any_tensor& dz, const any_tensor& x, const op::reduction& r) {
  bool all = r.axes.size() == x.rank();
  return broadcast_to(r.keepdims || all ? dz : expand(dz, r.axes), x, {});
}

}  // namespace detail
}  // namespace deft
