// SPDX-License-Identifier: Apache-2.0
// deft/op/initialized.ipp: nodes that ask for a variable's value on the processor of its task.
#pragma once
#include <deft/op/initialized.hpp>

namespace deft {

ext::tensor_type op::is_initialized::infer(std::span<const ext::tensor_type>) const {
  expect_extents(name, shape, true);
  return {dims{}, dtype::boolean};
}
void op::await_initialized::infer(std::span<const ext::tensor_type>) const {
  expect_extents(name, shape, true);
}
ext::tensor_type op::value_generation::infer(std::span<const ext::tensor_type>) const {
  expect_extents(name, shape, true);
  return {dims{}, dtype::int64};
}
void op::begin_restoring::infer(std::span<const ext::tensor_type>) const {
  expect_extents(name, shape, true);
}
void op::end_restoring::infer(std::span<const ext::tensor_type>) const {
  expect_extents(name, shape, true);
}

namespace {

template <class Op>
ext::node_ref about_variable(const any_variable& v, ext::source_location w) {
  const auto state = ext::decode<op::variable>(v.handle().node->attributes);
  Op o;
  o.container = state.container;
  o.variable = state.variable_name;
  o.type = state.type;
  o.shape = state.shape;
  return ext::add_node(ext::graph_for(*v.handle().node), o,
                       {.location = w, .device = detail::processor_of(v)});
}

}  // namespace

tensor<bool> is_initialized(const any_variable& v, ext::source_location w) {
  return tensor<bool>(ext::output{about_variable<op::is_initialized>(v, w), 0});
}
operation await_initialized(const any_variable& v, ext::source_location w) {
  return operation(about_variable<op::await_initialized>(v, w));
}

any_tensor detail::value_generation(const any_variable& v) {
  return any_tensor(ext::output{about_variable<op::value_generation>(v, ext::here()), 0});
}
operation detail::begin_restoring(const any_variable& v) {
  return operation(about_variable<op::begin_restoring>(v, ext::here()));
}
operation detail::end_restoring(const any_variable& v) {
  return operation(about_variable<op::end_restoring>(v, ext::here()));
}
operation detail::initialize_if_empty(const any_variable& v) {
  const ext::output variable = v.handle();
  return operation(
      update<op::initialize>(variable, initial_value(*variable.node), ext::here()).node);
}

}  // namespace deft
