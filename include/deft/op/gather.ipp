// SPDX-License-Identifier: Apache-2.0
// deft/op/gather.ipp: shape rules of gather and scatter_add.
#pragma once
#include <deft/op/gather.hpp>
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

}  // namespace deft
