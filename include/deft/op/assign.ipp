// SPDX-License-Identifier: Apache-2.0
// deft/op/assign.ipp: shape rules of updates, and their nodes.
#pragma once
#include <deft/op/assign.hpp>
#include <deft/op/broadcast_to.hpp>

namespace deft {

ext::tensor_type op::variable_state::checked(std::string_view op) const {
  if (variable_name.empty())
    ext::fail(errc::invalid_argument, "[", op, "] a variable without a name");
  expect_extents(op, shape, true);
  return {shape, type};
}

ext::tensor_type op::variable_state::checked_update(std::string_view op,
                                                    const ext::tensor_type& value,
                                                    bool arithmetic) const {
  ext::tensor_type t = checked(op);
  if (arithmetic && !ext::is_numeric(type))
    ext::fail(errc::invalid_argument, "[", op, "] is not defined for ", type);
  if (value.type != type || !unify(shape, value.shape, t.shape))
    ext::fail(errc::invalid_argument, "[", op, "] ", value, " does not fit variable \"",
              variable_name, "\", which is ", ext::tensor_type{shape, type});
  return t;
}

namespace detail {

output at_variable(const op_def& def, const output& variable, attr_list attributes,
                   std::span<const output> inputs, source_location w) {
  const node_ref& n = variable.node;
  return {graph_for(*n).add({.def = &def,
                             .attributes = std::move(attributes),
                             .inputs = inputs,
                             .location = w,
                             .device = n->device(),
                             .keeps = n}),
          0};
}

output update(const op_def& def, const output& variable, const output& value, source_location w,
              std::string_view extents_of) {
  attr_list attributes = variable.node->attributes;
  if (!extents_of.empty()) {
    auto state = decode<op::assign>(attributes);
    state.extents_of = extents_of;
    attributes = encode(state);
  }
  return at_variable(def, variable, std::move(attributes), {&value, 1}, w);
}

output constant_with(const output& like, any_array value, source_location w) {
  auto there = as_default(graph_for(*like.node));
  return add_constant(std::move(value), w).handle();
}

output filled(any_array scalar, const output& like, source_location w) {
  auto there = as_default(graph_for(*like.node));
  const any_tensor value(add_constant(std::move(scalar), w)), to(like);
  return (to.shape().is_static() ? broadcast_to(value, to.shape(), w) : broadcast_to(value, to, w))
      .handle();
}

output filled(std::string_view v, const output& like, source_location w) {
  return constant_with(like, repeated(v, like.type(), name_of(*like.node), w), w);
}

any_array repeated(std::string_view v, const tensor_type& type, const std::string& name,
                   source_location w) {
  if (type.type != dtype::string || !type.shape.is_static())
    throw error(errc::invalid_argument,
                str("a text does not fill ", type,
                    type.type == dtype::string ? ": expected an array of its extents" : ""),
                name, w);
  return {type.shape,
          std::vector<std::string_view>(static_cast<std::size_t>(type.shape.elements()), v)};
}

output filled(const literal& v, const output& like, source_location w) {
  any_array scalar;
  try {
    scalar = scalar_of(v, like.type().type);
  } catch (const error& e) {
    throw error(e.code(), e.message(), name_of(*like.node), w);
  }
  return filled(std::move(scalar), like, w);
}

}  // namespace detail
}  // namespace deft
