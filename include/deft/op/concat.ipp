// SPDX-License-Identifier: Apache-2.0
// deft/op/concat.ipp: shape rules of concat and concat_part, and axes known only at run time.
#pragma once
#include <deft/op/concat.hpp>

namespace deft {

ext::tensor_type op::concat::infer(std::span<const ext::tensor_type> in) const {
  dims sum = in[0].shape;
  if (axis < 0 || axis >= sum.rank())
    ext::fail(errc::invalid_argument, "[concat] expects an axis of a tensor of rank ", sum.rank(),
              ", and got ", axis);
  for (const auto& t : in.subspan(1)) {
    if (t.type != in[0].type)
      ext::fail(errc::invalid_argument, "[concat] the operands' dtypes differ: ", in[0].type,
                " and ", t.type, "; use cast");
    if (!append(sum, t.shape, static_cast<int>(axis)))
      ext::fail(errc::invalid_argument, "[concat] expects extents that agree on all axes but ",
                axis, ", and got ",
                ext::join(in, " ", [](const ext::tensor_type& i) { return i.shape; }));
  }
  return {sum, in[0].type};
}

ext::tensor_type op::concat_part::infer(std::span<const ext::tensor_type> in) const {
  const auto parts = in.subspan(1);
  if (part < 0 || part >= static_cast<std::int64_t>(parts.size()))
    ext::fail(errc::invalid_argument, "[concat_part] expects a part of ", parts.size(),
              ", and got ", part);
  dims whole = parts[0].shape;
  bool agree = axis >= 0 && axis < whole.rank();
  for (const auto& t : parts.subspan(1))
    agree = agree && concat::append(whole, t.shape, static_cast<int>(axis));
  if (!agree || !ext::may_equal(whole, in[0].shape))
    ext::fail(errc::invalid_argument, "[concat_part] ", in[0].shape, " is not made of ",
              ext::join(parts, " ", [](const ext::tensor_type& i) { return i.shape; }),
              " along axis ", axis);
  return {parts[static_cast<std::size_t>(part)].shape, in[0].type};
}

any_tensor concat(const axes& axis, std::span<const any_tensor> parts, ext::source_location w) {
  std::vector<ext::output> in;
  for (const auto& p : parts) in.push_back(p.handle());
  if (in.empty() || axis.value.size() != 1)
    throw error(errc::invalid_argument,
                ext::str("[concat] expects one axis and one tensor at least, and got ",
                         axis.value.size(), " and ", in.size()),
                "concat", w);
  return detail::add_concat(axis.value[0], in, w);
}

namespace detail {

any_tensor add_concat(std::int64_t axis, std::span<const output> parts, source_location w) {
  int rank = parts[0].type().shape.rank();
  int front = normalize_axis(axis, rank);
  if (front < 0)
    refuse_call(any_tensor(parts[0]),
                str("[concat] expects an axis of a tensor of rank ", rank, ", and got ", axis), w);
  return apply_any(op::concat{front}, parts, w);
}

}  // namespace detail
}  // namespace deft
