// SPDX-License-Identifier: Apache-2.0
// deft/op/sort.ipp: shape rule of sort, and its calls.
#pragma once
#include <deft/op/gather.hpp>
#include <deft/op/sort.hpp>
#include <deft/op/take_along.hpp>
#include <deft/op/transpose.hpp>

namespace deft {

std::array<ext::tensor_type, 2> op::sort::infer(std::span<const ext::tensor_type> in) const {
  const std::string_view of = count == dyn ? "sort" : "top_k";
  if (!ext::is_numeric(in[0].type))
    ext::fail(errc::invalid_argument, "[", of, "] is not defined for ", in[0].type);
  dims out;
  if (!shape(in[0].shape, out))
    ext::fail(errc::invalid_argument, "[", of, "] expects ",
              count == dyn ? std::string("elements") : ext::str(count, " elements or more"),
              " along a last axis, and got ", in[0].shape);
  return {{{out, in[0].type}, {out, dtype::int64}}};
}

namespace detail {
namespace {

sorted_pair sorted_rows(const op::sort& o, const any_tensor& x, source_location w) {
  const output in[] = {x.handle()};
  const node_ref n = apply_any(o, in, w).handle().node;
  return {any_tensor(output{n, 0}), any_tensor(output{n, 1})};
}

}  // namespace

sorted_pair add_sort(std::string_view name, const any_tensor& x, const dims& given,
                     const sort_options& options, source_location w) {
  const int axis = one_axis(name, x, given, w);
  const op::sort o{dyn, options.descending};
  if (axis == x.rank() - 1) return sorted_rows(o, x, w);
  // The operation's axis is the last: the two change places meanwhile.
  const axes swapped(swapped_with_last(x.rank(), axis));
  const auto [values, indices] = sorted_rows(o, transpose(x, swapped, w), w);
  return {transpose(values, swapped, w), transpose(indices, swapped, w)};
}

sorted_pair add_top_k(const any_tensor& x, std::int64_t k, source_location w) {
  if (k < 0) refuse_call(x, str("[top_k] expects a number of elements, and got ", k), w);
  return sorted_rows(op::sort{k, true}, x, w);
}

any_tensor unsorted(const any_tensor& dz, const any_tensor& indices, const any_tensor& x) {
  const any_tensor flat = reshape(x, dims{dyn});
  const output in[] = {dz.handle(), flat_places(x, indices, x.rank() - 1, {}).handle(),
                       flat.handle()};
  return reshape_like(apply_any(op::scatter_add{}, in, {}), x, {});
}

}  // namespace detail
}  // namespace deft
