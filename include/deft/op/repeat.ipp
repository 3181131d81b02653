// SPDX-License-Identifier: Apache-2.0
// deft/op/repeat.ipp: numbers of times and axes known only at run time, also of tile.
#pragma once
#include <algorithm>
#include <deft/op/expand_dims.hpp>
#include <deft/op/repeat.hpp>
#include <deft/op/tile.hpp>

namespace deft {

any_tensor tile(const any_tensor& x, const dims& times, ext::source_location w) {
  return detail::tile_checked(x, times, w);
}

namespace detail {

any_tensor repeat_along(const any_tensor& x, int axis, std::int64_t n, bool each,
                        source_location w) {
  if (n == 1) return x;
  const int added = each ? axis + 1 : axis;
  const any_tensor apart = expand(x, {added}, w);
  dims to = dims::filled(apart.rank(), dyn);  // what it has
  to[added] = n;
  const any_tensor all = broadcast_to(apart, to, w);
  dims joined = x.shape();
  for (int i = 0; i < joined.rank(); ++i)
    if (i != axis && joined[i] == dyn) joined[i] = op::reshape::extent_of(i < axis ? i : i + 1);
  if (joined[axis] != dyn) joined[axis] *= n;
  return add_reshape(all, joined, w);
}

any_tensor repeat_checked(const any_tensor& x, const dims& given, std::int64_t n,
                          source_location w) {
  const int axis = given.size() == 1 ? normalize_axis(given[0], x.rank()) : -1;
  if (axis < 0 || n < 0 || n > max_elements)
    refuse_call(x,
                str("[repeat] expects a number of times and one axis of a tensor of rank ",
                    x.rank(), ", and got ", n, " and ", list_text(given)),
                w);
  return repeat_along(x, axis, n, true, w);
}

any_tensor tile_checked(const any_tensor& x, const dims& times, source_location w) {
  dims out;
  if (!tiled(x.shape(), times, out))
    refuse_call(x,
                str("[tile] expects numbers of times, none negative, and got ", list_text(times),
                    " for ", x.shape()),
                w);
  any_tensor all = x;
  const int added = std::max(0, times.rank() - x.rank()), whole = out.rank() - times.rank();
  for (int i = times.rank(); i-- > added;)
    all = repeat_along(all, whole + i - added, times[i], false, w);
  if (added == 0) return all;
  dims to = dims::filled(out.rank(), dyn);
  for (int i = 0; i < added; ++i) to[i] = times[i];
  return broadcast_to(all, to, w);
}

}  // namespace detail
}  // namespace deft
