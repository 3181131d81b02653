// SPDX-License-Identifier: Apache-2.0
// deft/op/scatter.ipp: shape rules of what changes rows; gradients that are made of slices.
#pragma once
#include <algorithm>
#include <deft/op/cast.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/scatter.hpp>
#include <optional>

namespace deft {

ext::tensor_type op::sum_rows::infer(std::span<const ext::tensor_type> in) const {
  const dims &rows = in[0].shape, &indices = in[1].shape;
  if (!ext::is_numeric(in[0].type))
    ext::fail(errc::invalid_argument, "[sum_rows] is not defined for ", in[0].type);
  if (!ext::index_dtypes.has(in[1].type))
    ext::fail(errc::invalid_argument, "[sum_rows] expects int32 or int64 indices, and got ",
              in[1].type);
  bool fit = rows.rank() >= indices.rank();
  for (int i = 0; fit && i < indices.rank(); ++i)
    fit = rows[i] == indices[i] || rows[i] == dyn || indices[i] == dyn;
  if (!fit)
    ext::fail(errc::invalid_argument, "[sum_rows] ", rows, " does not hold rows for indices of ",
              indices);
  return in[0];
}

ext::tensor_type op::row_update::checked_rows(std::string_view op,
                                              std::span<const ext::tensor_type> in) const {
  const ext::tensor_type v = checked(op);
  if (!ext::is_numeric(type))
    ext::fail(errc::invalid_argument, "[", op, "] is not defined for ", type);
  if (!ext::index_dtypes.has(in[1].type))
    ext::fail(errc::invalid_argument, "[", op, "] expects int32 or int64 indices, and got ",
              in[1].type);
  dims rows;
  if (in[0].type != type || !gather::shape(shape, in[1].shape, rows) ||
      !ext::may_equal(rows, in[0].shape))
    ext::fail(errc::invalid_argument, "[", op, "] ", in[0], " does not hold rows of variable \"",
              variable_name, "\", ", v, ", for indices of ", in[1].shape);
  return v;
}

namespace ext {

any_tensor sum_rows(const any_tensor& rows, const any_tensor& indices, bool repeat,
                    source_location w) {
  const output in[] = {rows.handle(), indices.handle()};
  return detail::apply_any(op::sum_rows{repeat}, in, w);
}

}  // namespace ext

namespace {

ext::assigned<any_tensor> update_rows(const ext::op_def& def, const any_variable& v,
                                      const any_tensor& indices, const any_tensor& rows,
                                      ext::source_location w) {
  const ext::output in[] = {rows.handle(), indices.handle()};
  return ext::assigned<any_tensor>(
      detail::at_variable(def, v.handle(), v.handle().node->attributes, in, w));
}

}  // namespace

ext::assigned<any_tensor> scatter_sub(const any_variable& v, const any_tensor& indices,
                                      const any_tensor& rows, ext::source_location w) {
  return update_rows(ext::record_of<op::scatter_sub>, v, indices, rows, w);
}
ext::assigned<any_tensor> scatter_update(const any_variable& v, const any_tensor& indices,
                                         const any_tensor& rows, ext::source_location w) {
  return update_rows(ext::record_of<op::scatter_update>, v, indices, rows, w);
}

namespace detail {

any_tensor indexed_slices::tensor() const {
  const output in[] = {rows.handle(), indices.handle(), like.handle()};
  return apply_any(op::scatter_add(), in, {});
}

std::optional<indexed_slices> slices_of(const any_tensor& t) {
  const node& n = *t.handle().node;
  if (n.def != &record_of<op::scatter_add>) return {};
  indexed_slices s{any_tensor(n.inputs()[0]), any_tensor(n.inputs()[1]), any_tensor(n.inputs()[2])};
  if (s.indices.rank() == 1) return s;
  dims row{dyn};
  for (int i = 1; i < s.like.rank(); ++i) row.push_back(s.like.shape()[i]);
  for (int i = 1; i < row.rank(); ++i)
    if (row[i] == dyn || row[i] == 0) return {};  // reshape can find out one extent alone
  return indexed_slices{reshape(s.rows, row), reshape(s.indices, dims{dyn}), s.like};
}

any_tensor sum_of_slices(std::span<const any_tensor> parts) {
  std::vector<any_tensor> rows, indices;
  any_tensor like;
  for (const any_tensor& p : parts) {
    const auto s = slices_of(p);
    if (!s || (like.valid() && like.handle().type() != s->like.handle().type())) return {};
    if (!like.valid()) like = s->like;
    rows.push_back(s->rows);
    indices.push_back(s->indices);
  }
  if (rows.empty()) return {};
  if (rows.size() == 1) return parts[0];
  const source_location w = parts[0].handle().node->location();
  const auto alike = [&](const any_tensor& i) { return i.type() == indices[0].type(); };
  if (!std::ranges::all_of(indices, alike))
    for (any_tensor& i : indices) i = cast(i, dtype::int64);
  return indexed_slices{concat(axes{0}, rows, w), concat(axes{0}, indices, w), like}.tensor();
}

}  // namespace detail
}  // namespace deft
