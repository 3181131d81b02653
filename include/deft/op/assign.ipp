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

output update(const op_def& def, const output& variable, const output& value, source_place w,
              std::string_view like) {
  node_request r;
  r.def = &def;
  r.attributes = variable.node->attributes;
  if (!like.empty()) {
    auto state = decode<op::assign>(r.attributes);
    state.like = like;
    r.attributes = encode(state);
  }
  r.inputs = {&value, 1};
  r.place = w;
  r.device = variable.node->device();
  r.keeps = variable.node;
  return {graph_for(*variable.node).add(std::move(r)), 0};
}

output constant_with(const output& like, any_array value, source_place w) {
  auto there = as_default(graph_for(*like.node));
  return add_constant(std::move(value), w).handle();
}

output filled(any_array scalar, const output& like, source_place w) {
  auto there = as_default(graph_for(*like.node));
  const any_tensor value(add_constant(std::move(scalar), w)), to(like);
  return (to.shape().is_static() ? broadcast_to(value, to.shape(), w) : broadcast_to(value, to, w))
      .handle();
}

output filled(const literal& v, const output& like, source_place w) {
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
