// SPDX-License-Identifier: Apache-2.0
// deft/train/slots.ipp: slots are made, or found by their names.
#pragma once
#include <deft/op/assign.hpp>
#include <deft/train/slots.hpp>

namespace deft::detail {

placed_with::placed_with(const any_variable& v) : outside_(push_name{""}) {
  if (const auto& placed = v.handle().node->device()) there_.emplace(device(*placed));
}

any_variable slot_of(const any_variable& v, std::string_view suffix, const tensor_type& type,
                     const initializer& first) {
  const node& n = *v.handle().node;
  const std::string name = str(v.name(), "/", suffix);
  if (node_ref made = graph::of(n).find_variable(name)) {
    const any_variable found(made);
    if (made->variable()->trainable || !(found.handle().type() == type))
      throw error(errc::invalid_argument,
                  str("a variable of this name, ", found.handle().type(),
                      ", is in the graph already, where a slot of \"", v.name(), "\", ", type,
                      ", is needed"),
                  name, made->location());
    return found;
  }
  const placed_with there(v);
  auto in_graph = as_default(graph::of(n));
  variable_options options;
  options.trainable = false;
  return any_variable(make_variable(name, type, first, options, n.location()).node);
}

any_variable slot_of(const any_variable& v, std::string_view suffix, dtype type, double value) {
  const tensor_type wanted{v.shape(), type};
  if (wanted.shape.is_static()) return slot_of(v, suffix, wanted, value);
  // As large as the variable's first value is in a run.
  const any_array one =
      visit_dtype(type, [&]<class T>() { return any_array::scalar(static_cast<T>(value)); });
  return slot_of(v, suffix, wanted, any_tensor(filled(one, v.initial_value().handle(), {})));
}

}  // namespace deft::detail
