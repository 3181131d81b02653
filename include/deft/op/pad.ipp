// SPDX-License-Identifier: Apache-2.0
// deft/op/pad.ipp: shape rule of pad, and numbers known only at run time.
#pragma once
#include <cmath>
#include <deft/op/pad.hpp>
#include <deft/op/slice.hpp>

namespace deft {

tensor_type op::pad::infer(std::span<const tensor_type> in) const {
  const dims& x = in[0].shape;
  const bool fits = visit_dtype(in[0].type, [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>)
      return std::isinf(static_cast<T>(value)) == std::isinf(value);
    else if constexpr (std::is_same_v<T, bool>)
      return value == 0 || value == 1;
    else  // the largest integer may round up to one beyond it
      return value == std::floor(value) &&
             value >= static_cast<double>(std::numeric_limits<T>::min()) &&
             value < static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2;
  });
  if (!fits) fail(errc::invalid_argument, "[pad] ", value, " does not fit ", in[0].type);
  if (in.size() == 2) {
    dims part;
    if (!after.empty() || !slice{before, x}.shape(in[1].shape, part))
      fail(errc::invalid_argument, "[pad] ", x, " does not fit into ", in[1].shape, " at ", before);
    return {in[1].shape, in[0].type};
  }
  dims out;
  if (!shape(x, out))
    fail(errc::invalid_argument, "[pad] expects numbers of elements before and after each axis of ",
         x, ", and got ", before, " and ", after);
  return {out, in[0].type};
}

any_tensor pad(const any_tensor& x, const dims& before, const dims& after, double value,
               source_place w) {
  const dims none = dims::filled(x.rank(), 0);
  if (before == none && after == none) return x;
  const output in[] = {x.handle()};
  return detail::apply_any(op::pad{before, after, value}, in, w);
}

any_tensor detail::pad_to(const any_tensor& part, const dims& begin, const dims& size,
                          const any_tensor& x) {
  dims behind;
  for (int i = 0; i < x.rank() && !size.empty(); ++i) {
    const std::int64_t e = x.shape()[i];
    if (size[i] == dyn)
      behind.push_back(0);
    else if (e != dyn)
      behind.push_back(e - begin[i] - size[i]);
    else
      break;
  }
  if (!size.empty() && behind.size() == x.rank()) return pad(part, begin, behind, 0, {});
  const output in[] = {part.handle(), x.handle()};
  return apply_any(op::pad{begin, {}}, in, {});
}

}  // namespace deft
