// SPDX-License-Identifier: Apache-2.0
// deft/op/scatter.ipp: shape rules of what changes rows; gradients that are made of slices.
#pragma once
#include <algorithm>
#include <deft/op/add.hpp>
#include <deft/op/arange.hpp>
#include <deft/op/cast.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/div.hpp>
#include <deft/op/equal.hpp>
#include <deft/op/fill.hpp>
#include <deft/op/gather.hpp>
#include <deft/op/logical_or.hpp>
#include <deft/op/maximum.hpp>
#include <deft/op/mul.hpp>
#include <deft/op/neg.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/scatter.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/sub.hpp>
#include <deft/op/where.hpp>
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

namespace {

void check_rows(std::string_view op, std::span<const ext::tensor_type> in, int indices,
                const ext::tensor_type& x, std::string_view of) {
  const ext::tensor_type &rows = in[static_cast<std::size_t>(indices - 1)],
                         &index = in[static_cast<std::size_t>(indices)];
  if (!ext::is_numeric(x.type))
    ext::fail(errc::invalid_argument, "[", op, "] is not defined for ", x.type);
  if (!ext::index_dtypes.has(index.type))
    ext::fail(errc::invalid_argument, "[", op, "] expects int32 or int64 indices, and got ",
              index.type);
  dims shape;
  if (rows.type != x.type || !op::gather::shape(x.shape, index.shape, shape) ||
      !ext::may_equal(shape, rows.shape))
    ext::fail(errc::invalid_argument, "[", op, "] ", rows, " does not hold rows of ", of, x,
              ", for indices of ", index.shape);
}

}  // namespace

ext::tensor_type op::row_update::checked_rows(std::string_view op,
                                              std::span<const ext::tensor_type> in) const {
  const ext::tensor_type v = checked(op);
  check_rows(op, in, 1, v, ext::str("variable \"", variable_name, "\", "));
  return v;
}
ext::tensor_type op::changed_rows::checked_rows(std::string_view op,
                                                std::span<const ext::tensor_type> in) {
  check_rows(op, in, 2, in[0], "");
  return in[0];
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

ext::assigned<any_tensor> scatter_add(const any_variable& v, const any_tensor& indices,
                                      const any_tensor& rows, ext::source_location w) {
  return scatter_sub(v, indices, -rows, w);
}
ext::assigned<any_tensor> scatter_max(const any_variable& v, const any_tensor& indices,
                                      const any_tensor& rows, ext::source_location w) {
  return update_rows(ext::record_of<op::scatter_max>, v, indices, rows, w);
}

namespace detail {

any_tensor scatter_rows(const any_tensor& x, const any_tensor& indices, const any_tensor& rows,
                        source_location w) {
  const output in[] = {x.handle(), rows.handle(), indices.handle()};
  return apply_any(op::scatter(), in, w);
}
any_tensor scatter_add_rows(const any_tensor& x, const any_tensor& indices, const any_tensor& rows,
                            source_location w) {
  const output in[] = {rows.handle(), indices.handle(), x.handle()};
  return make<op::add>(w, x, apply_any(op::scatter_add(), in, w));
}
any_tensor scatter_max_rows(const any_tensor& x, const any_tensor& indices, const any_tensor& rows,
                            source_location w) {
  const output in[] = {x.handle(), rows.handle(), indices.handle()};
  return apply_any(op::scatter_maximum(), in, w);
}

std::tuple<any_tensor, any_tensor> scatter_gradient(const any_tensor& indices,
                                                    const any_tensor& rows, const any_tensor& dz) {
  // The last row of each index, which the greatest of their numbers tells.
  const any_tensor flat = reshape(indices, dims{dyn}), number = arange(size_of(flat));
  const any_tensor none = arange(size_of(dz, axes{0})) * 0 - 1;
  const any_tensor last = number == gather(scatter_max_rows(none, flat, number, {}), flat);
  dims columns;
  for (int i = indices.rank(); i < rows.rank(); ++i) columns.push_back(i);
  return {scatter_rows(dz, indices, zeros_like(rows), {}),
          where(expand(reshape_like(last, indices, {}), columns), gather(dz, indices), 0)};
}
std::tuple<any_tensor, any_tensor> scatter_max_gradient(const any_tensor& x, const any_tensor& rows,
                                                        const any_tensor& indices,
                                                        const any_tensor& z, const any_tensor& dz) {
  const any_tensor kept = x == z, greatest = rows == gather(z, indices);
  const output in[] = {cast(greatest, dz.type()).handle(), indices.handle(), x.handle()};
  const any_tensor count = apply_any(op::scatter_add(), in, {});
  const any_tensor part = where(kept, 0, dz / maximum(count, 1));
  return {where(kept || count == 0, dz, 0), where(greatest, gather(part, indices), 0)};
}

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
