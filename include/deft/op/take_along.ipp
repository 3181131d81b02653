// SPDX-License-Identifier: Apache-2.0
// deft/op/take_along.ipp: elements by indices, as rows of one element.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/cast.hpp>
#include <deft/op/greater_equal.hpp>
#include <deft/op/less.hpp>
#include <deft/op/logical_and.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/take_along.hpp>
#include <deft/op/where.hpp>

namespace deft::detail {

any_tensor flat_places(const any_tensor& x, const any_tensor& indices, int axis,
                       source_location w) {
  const location_scope on_behalf(w);
  const int rank = x.rank();
  const any_tensor i = cast(indices, dtype::int64);
  any_tensor at;
  dims behind;
  for (int d = rank; d-- > 0;) {
    any_tensor along = d == axis ? i : numbers_along(x, d, rank);
    if (!behind.empty()) along = along * size_of(x, axes(behind));
    at = at.valid() ? any_tensor(along + at) : along;
    behind.push_back(d);
  }
  return where(i >= 0 && i < size_of(x, axes{axis}), at, -1);
}

any_tensor add_take_along(const any_tensor& x, const any_tensor& indices, const dims& given,
                          source_location w) {
  const int axis = one_axis("take_along", x, given, w);
  if (!index_dtypes.has(indices.type()))
    refuse_call(indices,
                str("[take_along] expects int32 or int64 indices, and got ", indices.type()), w);
  dims all = x.shape(), out;
  all[axis] = 1;
  if (indices.rank() != x.rank() || !broadcast(all, indices.shape(), out))
    refuse_call(indices,
                str("[take_along] expects indices that can be broadcast to the other axes of ",
                    x.shape(), " than ", axis, ", and got ", indices.shape()),
                w);
  return gather(reshape(x, dims{dyn}, w), flat_places(x, indices, axis, w), w);
}

}  // namespace deft::detail
