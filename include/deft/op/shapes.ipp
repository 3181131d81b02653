// SPDX-License-Identifier: Apache-2.0
// deft/op/shapes.ipp: operations on shapes as run time knows them.
#pragma once
#include <deft/op/argmax.hpp>
#include <deft/op/broadcast_to.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/expand_dims.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/size_of.hpp>
#include <deft/op/sum.hpp>
#include <deft/op/sum_to.hpp>

namespace deft {

any_tensor reshape(const any_tensor& x, const dims& to, source_place w) {
  if (to.is_static() && x.shape() == to) return x;
  const output in[] = {x.handle()};
  return detail::apply_any(op::reshape{to}, in, w);
}

any_tensor broadcast_to(const any_tensor& x, const dims& to, source_place w) {
  if (to.is_static() && x.shape() == to) return x;
  const output in[] = {x.handle()};
  return detail::apply_any(op::broadcast_to{to}, in, w);
}

any_tensor concat(const axes& axis, std::span<const any_tensor> parts, source_place w) {
  std::vector<output> in;
  for (const auto& p : parts) in.push_back(p.handle());
  if (in.empty() || axis.value.size() != 1)
    fail(errc::invalid_argument, "[concat] expects one axis and one tensor at least, and got ",
         axis.value.size(), " and ", in.size());
  return detail::add_concat(axis.value[0], in, w);
}

namespace detail {
namespace {

dims normalized(std::string_view name, const any_tensor& x, const axes* given) {
  if (!given) return op::all_axes_of(x.rank());
  dims out;
  if (!op::normalize_axes(given->value, x.rank(), out))
    throw error(errc::invalid_argument,
                str("[", name, "] expects axes of a tensor of rank ", x.rank(),
                    ", each once, and got ", given->value),
                name_of(x), x.handle().node->place);
  return out;
}

}  // namespace

any_tensor add_reduction(const op_def& def, const any_tensor& x, const axes* given, bool keep,
                         source_place w) {
  const output in[] = {x.handle()};
  return add_node(def, encode(op::reduction{normalized(def.name, x, given), keep}), in, w);
}

any_tensor size_along(const any_tensor& x, const axes* given, source_place w) {
  dims along = normalized("size_of", x, given), extents;
  for (auto a : along) extents.push_back(x.shape()[static_cast<int>(a)]);
  if (extents.is_static()) return add_constant(any_array::scalar(extents.elements()), w);
  const output in[] = {x.handle()};
  return apply_any(op::size_of{along}, in, w);
}

any_tensor reshape_like(const any_tensor& x, const any_tensor& like, source_place w) {
  const dims& to = like.shape();
  if (same(x, like)) return x;
  int unknown = 0;
  for (auto e : to) unknown += e == dyn;
  if (unknown == 0 || (unknown == 1 && !to.contains(0))) return reshape(x, to, w);
  const output in[] = {x.handle(), like.handle()};
  return apply_any(op::reshape{}, in, w);
}

any_tensor expand(const any_tensor& x, const dims& added, source_place w) {
  dims to = x.shape();
  if (!to.is_static())
    for (int i = 0; i < to.n; ++i)
      if (to[i] == dyn) to[i] = op::reshape::extent_of(i);
  return reshape(x, op::with_axes(to, added), w);
}

any_tensor expand_checked(const any_tensor& x, const dims& given, source_place w) {
  dims added;
  int rank = x.rank() + given.size();
  if (rank > max_rank || !op::normalize_axes(given, rank, added))
    throw error(errc::invalid_argument,
                str("[expand_dims] expects axes of a result of rank ", rank,
                    ", at most 8, each once, and got ", given),
                name_of(x), x.handle().node->place);
  return expand(x, added, w);
}

any_tensor add_argmax(const any_tensor& x, const dims& given, source_place w) {
  dims axis = given.size() == 1 ? given : dims{};
  if (axis.empty() || normalize_axis(axis[0], x.rank()) < 0)
    throw error(
        errc::invalid_argument,
        str("[argmax] expects one axis of a tensor of rank ", x.rank(), ", and got ", given),
        name_of(x), x.handle().node->place);
  const output in[] = {x.handle()};
  return apply_any(op::argmax{normalize_axis(axis[0], x.rank())}, in, w);
}

any_tensor add_concat(std::int64_t axis, std::span<const output> parts, source_place w) {
  int rank = parts[0].type().shape.rank();
  int front = normalize_axis(axis, rank);
  if (front < 0)
    throw error(errc::invalid_argument,
                str("[concat] expects an axis of a tensor of rank ", rank, ", and got ", axis),
                name_of(*parts[0].node), parts[0].node->place);
  return apply_any(op::concat{front}, parts, w);
}

any_tensor spread(const any_tensor& dz, const any_tensor& x, const op::reduction& r) {
  bool all = r.axes.size() == x.rank();
  return broadcast_to(r.keepdims || all ? dz : expand(dz, r.axes), x, {});
}

any_tensor broadcast_like(const any_tensor& x, const any_tensor& like, source_place w) {
  if (like.shape().is_static()) return broadcast_to(x, like.shape(), w);
  if (same(x, like)) return x;
  const output in[] = {x.handle(), like.handle()};
  return apply_any(op::broadcast_to{}, in, w);
}

any_tensor sum_like(const any_tensor& x, const any_tensor& like, source_place w) {
  const dims &from = x.shape(), &to = like.shape();
  if (same(x, like) || (from == to && from.is_static())) return x;
  // Axes that are summed; an extent that only run time knows may be 1, or may not.
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
