// SPDX-License-Identifier: Apache-2.0
// deft/train/moving_average.ipp: shadow variables, their updates, and the exchange with their
// variables.
#pragma once
#include <algorithm>
#include <deft/op/catalog.hpp>
#include <deft/train/moving_average.hpp>
#include <deft/train/slots.hpp>

namespace deft {

exponential_moving_average::exponential_moving_average(double decay, moving_average_options options,
                                                       ext::source_location w)
    : decay_(decay), options_(std::move(options)) {
  if (!(decay >= 0 && decay <= 1))
    throw error(
        errc::invalid_argument,
        ext::str("[exponential_moving_average] expects a decay from 0 to 1, and got ", decay), {},
        w);
  const any_tensor& n = options_.num_updates;
  if (n.valid() && (n.rank() != 0 || !ext::is_numeric(n.type())))
    throw error(
        errc::invalid_argument,
        ext::str("[exponential_moving_average] expects a scalar of numbers as num_updates, and "
                 "got ",
                 n.handle().type()),
        name_of(n), w);
}

operation exponential_moving_average::apply(ext::source_location w) {
  return apply(trainable_variables(current_graph()), w);
}

operation exponential_moving_average::apply(const std::vector<any_variable>& variables,
                                            ext::source_location w) {
  if (variables.empty())
    throw error(errc::invalid_argument,
                "[exponential_moving_average] there are no variables to average", {}, w);
  for (const any_variable& v : variables)
    if (!ext::is_floating(v.type()))
      throw error(errc::invalid_argument,
                  ext::str("[exponential_moving_average] expects floating variables, and got ",
                           v.handle().type()),
                  v.name(), w);
  const ext::location_scope on_behalf(w);
  const auto in_graph = as_default(graph::of(*variables[0].handle().node));
  any_tensor fresh = hyperparameter(1 - decay_).as(dtype::float64);
  if (options_.num_updates.valid()) {
    const any_tensor n = cast(options_.num_updates, dtype::float64);
    fresh = maximum(fresh, 9 / (n + 10));  // 1 - (1 + n) / (10 + n)
  }
  std::vector<ext::node_ref> updates;
  for (const any_variable& v : variables) {
    const detail::placed_with there(v);
    const any_variable s =
        detail::slot_of(v, options_.name, {v.shape(), v.type()}, v.initial_value());
    // As it is after what this follows.
    const any_tensor now = v.read(w);
    updates.push_back(s.assign_sub((s.read(w) - now) * cast(fresh, v.type())).handle());
    const bool known = std::ranges::any_of(
        variables_, [&](const any_variable& k) { return k.handle() == v.handle(); });
    if (!known) variables_.push_back(v);
  }
  ext::control_scope after(updates);
  return no_op(w);
}

any_variable exponential_moving_average::average(const any_variable& v,
                                                 ext::source_location w) const {
  const std::string name = ext::str(v.name(), "/", options_.name);
  if (ext::node_ref n = graph::of(*v.handle().node).find_variable(name)) return any_variable(n);
  throw error(errc::not_found, "[exponential_moving_average] it has no average of this variable",
              v.name(), w);
}

operation exponential_moving_average::swap(ext::source_location w) const {
  const ext::location_scope on_behalf(w);
  std::vector<ext::node_ref> updates;
  for (const any_variable& v : variables_) {
    const detail::placed_with there(v);
    const any_variable s = average(v, w);
    const any_tensor current = v.read(w), averaged = s.read(w);
    ext::control_scope after_reads({current.handle().node, averaged.handle().node});
    updates.push_back(v.assign(averaged).handle());
    updates.push_back(s.assign(current).handle());
  }
  ext::control_scope after(updates);
  return no_op(w);
}

std::map<std::string, any_variable> exponential_moving_average::variables_to_restore(
    graph g) const {
  std::map<std::string, any_variable> named;
  for (const ext::node_ref& n : g.variables())
    named.emplace(any_variable(n).name(), any_variable(n));
  for (const any_variable& v : trainable_variables(g)) {
    named.erase(v.name());
    named.insert_or_assign(ext::str(v.name(), "/", options_.name), v);
  }
  return named;
}

}  // namespace deft
