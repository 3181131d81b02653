// SPDX-License-Identifier: Apache-2.0
// deft/op/fill.ipp: tensors of one value.
#pragma once
#include <deft/op/fill.hpp>

namespace deft {

namespace detail {

any_tensor filled(const any_tensor& value, const run_extents& e, source_location w) {
  if (value.rank() != 0)
    refuse_call(value, str("[fill] expects a scalar, and got ", value.handle().type()), w);
  try {
    op::expect_extents("fill", e.known, e.carrier.valid());
  } catch (const error& wrong) {
    throw error(wrong.code(), wrong.message(), {}, w);
  }
  if (!e.carrier.valid()) return e.known.empty() ? value : broadcast_to(value, e.known, w);
  const output in[] = {value.handle(), e.carrier.handle()};
  return apply_any(op::broadcast_to{e.known}, in, w);
}

any_tensor filled_like(const literal& value, const any_tensor& x, source_location w) {
  return broadcast_like(literal_like(value, x.type(), w), x, w);
}

}  // namespace detail

any_tensor zeros(const dims& shape, dtype type, ext::source_location w) {
  return detail::filled(detail::literal_like(0, type, w), shape, w);
}
any_tensor ones(const dims& shape, dtype type, ext::source_location w) {
  return detail::filled(detail::literal_like(1, type, w), shape, w);
}

}  // namespace deft
