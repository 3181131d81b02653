// SPDX-License-Identifier: Apache-2.0
// deft/op/gather.ipp: shape rules of gather and scatter_add; rows along any axis.
#pragma once
#include <deft/op/add.hpp>
#include <deft/op/arange.hpp>
#include <deft/op/cast.hpp>
#include <deft/op/gather.hpp>
#include <deft/op/greater_equal.hpp>
#include <deft/op/less.hpp>
#include <deft/op/logical_and.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/where.hpp>
#include <optional>

namespace deft {

ext::tensor_type op::gather::infer(std::span<const ext::tensor_type> in) const {
  if (in[1].type != dtype::int32 && in[1].type != dtype::int64)
    ext::fail(errc::invalid_argument, "[gather] expects int32 or int64 indices, and got ",
              in[1].type);
  dims out;
  if (!shape(in[0].shape, in[1].shape, out))
    ext::fail(errc::invalid_argument, "[gather] expects a result of rank 8 at most from rows of ",
              in[0].shape, ", and got indices of ", in[1].shape);
  return {out, in[0].type};
}

ext::tensor_type op::scatter_add::infer(std::span<const ext::tensor_type> in) const {
  if (!ext::is_numeric(in[0].type))
    ext::fail(errc::invalid_argument, "[scatter_add] is not defined for ", in[0].type);
  if (in[1].type != dtype::int32 && in[1].type != dtype::int64)
    ext::fail(errc::invalid_argument, "[scatter_add] expects int32 or int64 indices, and got ",
              in[1].type);
  dims rows;
  if (!gather::shape(in[2].shape, in[1].shape, rows) || !ext::may_equal(rows, in[0].shape))
    ext::fail(errc::invalid_argument, "[scatter_add] ", in[0].shape, " does not hold rows of ",
              in[2].shape, " for indices of ", in[1].shape);
  return {in[2].shape, in[0].type};
}

any_tensor detail::add_gather(const ext::output& params, const ext::output& indices,
                              ext::source_location w) {
  const ext::output in[] = {params, indices};
  const op_role role = params ? params.node->def->role : op_role::compute;
  if (role != op_role::variable && role != op_role::read) return apply_any(op::gather{}, in, w);
  const ext::scope anywhere(device(nullptr));
  std::optional<ext::scope> there;
  if (const ext::placement d = params.node->device()) there.emplace(device(*d));
  return apply_any(op::gather{}, in, w);
}

any_tensor detail::numbers_along(const any_tensor& x, int axis, int rank) {
  dims as = dims::filled(rank, 1);
  as[axis] = dyn;
  return reshape(any_tensor(arange(size_of(x, axes{axis}))), as);
}

any_tensor detail::add_gather_along(const any_tensor& params, const any_tensor& indices,
                                    const dims& given, ext::source_location w) {
  const int axis = one_axis("gather", params, given, w);
  if (axis == 0) return add_gather(params.handle(), indices.handle(), w);
  const int rank = axis + indices.rank();
  if (!ext::index_dtypes.has(indices.type()) || params.rank() - 1 + indices.rank() > max_rank)
    refuse_call(indices,
                ext::str("[gather] expects int32 or int64 indices, and a result of rank 8 at most "
                         "from ",
                         params.shape(), ", and got ", indices.handle().type()),
                w);
  const ext::location_scope on_behalf(w);
  // Rows of the axes behind, which are those of the axes before, one after the other.
  dims before, rows{dyn}, through;
  for (int d = 0; d < axis; ++d) before.push_back(d);
  for (int d = axis + 1; d < params.rank(); ++d) rows.push_back(op::reshape::extent_of(d));
  const any_tensor i = expand(cast(indices, dtype::int64), before), n = size_of(params, axes{axis});
  any_tensor at = i;
  for (int d = axis; d-- > 0;) {
    through.push_back(d + 1);
    at = numbers_along(params, d, rank) * size_of(params, axes(through)) + at;
  }
  return gather(add_reshape(params, rows, {}), where(i >= 0 && i < n, at, -1));
}

}  // namespace deft
