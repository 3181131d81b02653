// SPDX-License-Identifier: Apache-2.0
// deft/op/placeholder.ipp: shape rule of placeholder, and its node.
#pragma once
#include <deft/op/placeholder.hpp>

namespace deft {

ext::tensor_type op::placeholder::infer(std::span<const ext::tensor_type>) const {
  expect_extents(name, shape, true);
  return {shape, type};
}

any_tensor make_placeholder(std::string_view name, dtype type, const dims& shape,
                            ext::source_location w) {
  return any_tensor(detail::make_placeholder(name, {shape, type}, w));
}

namespace detail {

output make_placeholder(std::string_view name, const tensor_type& t, source_location w) {
  op::placeholder o;
  o.type = t.type;
  o.shape = t.shape;
  return {ext::add_node(current_graph(), o, {.location = w, .name = std::string(name)}), 0};
}

}  // namespace detail
}  // namespace deft
