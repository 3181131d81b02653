// SPDX-License-Identifier: Apache-2.0
// deft/op/roll.ipp: shifts and axes known only at run time.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/flatten.hpp>
#include <deft/op/maximum.hpp>
#include <deft/op/mod.hpp>
#include <deft/op/roll.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/slice.hpp>
#include <deft/op/sub.hpp>

namespace deft::detail {

any_tensor roll_checked(const any_tensor& x, const size_argument& shift, const dims& given,
                        source_location w) {
  const int axis = given.size() == 1 ? normalize_axis(given[0], x.rank()) : -1;
  if (axis < 0)
    refuse_call(x,
                str("[roll] expects one axis of a tensor of rank ", x.rank(), ", and got ",
                    list_text(given)),
                w);
  const std::int64_t n = x.shape()[axis];
  size_argument first = 0;  // what comes to the front
  if (n != dyn && !shift.tensor.valid()) {
    if (n == 0 || shift.number % n == 0) return x;
    first = shift.number % n > 0 ? n - shift.number % n : -(shift.number % n);
  } else {
    if (!shift.tensor.valid() && shift.number == 0) return x;
    const axes along{axis};
    const any_tensor size = size_along(x, &along, w), by = maximum(size, 1);
    const any_tensor rest =
        shift.tensor.valid() ? shift.tensor % by : literal_like(shift.number, dtype::int64, w) % by;
    first = (size - rest) % by;
  }
  const any_tensor parts[] = {slice_along(x, axis, first, dyn, 1, w),
                              slice_along(x, axis, 0, first, 1, w)};
  return concat(axes{axis}, parts, w);
}

any_tensor roll_elements(const any_tensor& x, const size_argument& shift, source_location w) {
  return reshape(roll_checked(flatten(x, w), shift, {0}, w), x, w);
}

}  // namespace deft::detail
