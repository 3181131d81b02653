// SPDX-License-Identifier: Apache-2.0
// deft/op/broadcast_to.ipp: shape rule of broadcast_to, and shapes known only at run time.
#pragma once
#include <deft/op/broadcast_to.hpp>
#include <deft/op/extents.hpp>

namespace deft {

ext::tensor_type op::broadcast_to::infer(std::span<const ext::tensor_type> in) const {
  const dims& x = in[0].shape;
  if (in.size() == 2) {
    const dims like = shape_by(name, to, in.subspan(1));
    dims out;
    if (!ext::broadcast(x, like, out) || !ext::may_equal(out, like))
      ext::fail(errc::invalid_argument, "[broadcast_to] ", x, " cannot be broadcast to ", like);
    return {like, in[0].type};
  }
  expect_extents(name, to, true);
  dims out;
  if (!shape(x, out))
    ext::fail(errc::invalid_argument, "[broadcast_to] ", x, " cannot be broadcast to ", to);
  return {out, in[0].type};
}

any_tensor broadcast_to(const any_tensor& x, const dims& to, ext::source_location w) {
  if (to.is_static() && x.shape() == to) return x;
  const ext::output in[] = {x.handle()};
  return detail::apply_any(op::broadcast_to{to}, in, w);
}

namespace detail {

any_tensor broadcast_like(const any_tensor& x, const any_tensor& like, source_location w) {
  if (like.shape().is_static()) return broadcast_to(x, like.shape(), w);
  if (same(x, like)) return x;
  const output in[] = {x.handle(), like.handle()};
  return apply_any(op::broadcast_to{}, in, w);
}

}  // namespace detail
}  // namespace deft
