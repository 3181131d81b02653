// SPDX-License-Identifier: Apache-2.0
// deft/op/constant.ipp: shape rule of constant.
#pragma once
#include <deft/op/constant.hpp>

namespace deft {

ext::tensor_type op::constant::infer(std::span<const ext::tensor_type>) const {
  expect_extents(name, value.shape(), false);
  if (value.storage().capacity() < value.bytes())
    ext::fail(errc::invalid_argument, "[constant] ", value.type(), value.shape(), " needs ",
              value.bytes(), " bytes, and has ", value.storage().capacity());
  return {value.shape(), value.type()};
}

any_tensor constant(any_array values, ext::source_location w) {
  return detail::add_constant(detail::owned(std::move(values)), w);
}

}  // namespace deft
