// SPDX-License-Identifier: Apache-2.0
// deft/train/optimizer.ipp: gradients to updates.
#pragma once
#include <deft/op/catalog.hpp>
#include <deft/plan/gradients.hpp>
#include <deft/train/optimizer.hpp>
#include <deft/train/slots.hpp>
#include <optional>

namespace deft {

any_tensor hyperparameter::as(dtype type) const {
  if (tensor_.valid()) return cast(tensor_, type);
  return visit_dtype(type, [&]<class T>() {
    return any_tensor(constant(ndarray<T>(any_array::scalar(static_cast<T>(value_)))));
  });
}

void hyperparameter::expect_scalar(source_place w) const {
  if (!tensor_.valid())
    throw error(errc::invalid_argument, "[optimizer] the tensor of a hyperparameter is empty", {},
                w);
  if (tensor_.rank() != 0 || !is_floating(tensor_.type()))
    throw error(errc::invalid_argument,
                str("[optimizer] expects a number or a floating scalar as a hyperparameter, and "
                    "got ",
                    tensor_.handle().type()),
                name_of(tensor_), w);
}

std::vector<any_variable> trainable_variables(graph g) {
  std::vector<any_variable> result;
  for (const node_ref& v : g.variables())
    // An integer has no gradient.
    if (v->variable()->trainable && is_floating(v->outputs[0].type)) result.emplace_back(v);
  return result;
}

std::vector<gradient_of_variable> optimizer::compute_gradients(const any_tensor& loss) const {
  return compute_gradients(loss, trainable_variables(graph::of(*loss.handle().node)));
}

std::vector<gradient_of_variable> optimizer::compute_gradients(
    const any_tensor& loss, const std::vector<any_variable>& variables) const {
  const auto in_graph = as_default(graph_of(loss));
  std::vector<any_tensor> xs;
  for (const any_variable& v : variables) xs.emplace_back(v.handle());
  std::vector<any_tensor> gradients = plan::gradients(loss, xs);
  std::vector<gradient_of_variable> result;
  for (std::size_t i = 0; i < variables.size(); ++i)
    result.push_back({variables[i], std::move(gradients[i])});
  return result;
}

operation optimizer::apply(const std::vector<gradient_of_variable>& gradients,
                           const variable<std::int64_t>* step, source_place w) const {
  const place_scope on_behalf(w);
  std::optional<graph_scope> in_graph;  // whatever this thread's current graph is
  if (!gradients.empty()) in_graph.emplace(graph::of(*gradients[0].variable.handle().node));
  std::vector<node_ref> updates;
  const bool waits = !controls_of(current_scope()).empty();
  for (const auto& [v, g] : gradients) {
    if (!g.valid()) continue;
    const detail::placed_with there(v);
    // What all of this is written after, the gradient waits for, and the update for the gradient:
    // it still reads the variable and its slots as they are before it.
    const any_tensor ready = waits ? any_tensor(identity(g)) : g;
    const scope without_controls(push_controls{nullptr});
    updates.push_back(update(v, ready).handle());
  }
  if (updates.empty())
    throw error(errc::invalid_argument, "[minimize] the loss depends on no trainable variable", {},
                w);
  control_scope after(updates);
  if (!step) return no_op(w);
  return step->assign_add(std::int64_t{1}, w);
}

operation optimizer::minimize_any(const any_tensor& loss, const variable<std::int64_t>* step,
                                  source_place w) const {
  if (loss.rank() != 0)
    throw error(errc::invalid_argument,
                str("[minimize] expects a scalar loss, and got ", loss.handle().type(),
                    ": use mean(loss), or sum(loss)"),
                name_of(loss), w);
  return apply(compute_gradients(loss), step, w);
}

any_variable optimizer::slot(const any_variable& v, std::string_view name, double value) {
  return detail::slot_of(v, name, value);
}
any_variable optimizer::scalar_slot(const any_variable& v, std::string_view name, double value) {
  return detail::slot_of(v, name, {dims{}, dtype::float64}, value);
}

std::vector<gradient_of_variable> average_gradients(
    const std::vector<std::vector<gradient_of_variable>>& replicas, source_place w) {
  if (replicas.empty()) return {};
  const place_scope on_behalf(w);
  std::vector<gradient_of_variable> result = replicas[0];
  for (std::size_t i = 0; i < result.size(); ++i) {
    auto& [v, total] = result[i];
    for (std::size_t r = 1; r < replicas.size(); ++r) {
      if (replicas[r].size() != result.size() || !(replicas[r][i].variable.handle() == v.handle()))
        throw error(errc::invalid_argument,
                    "[average_gradients] the replicas have gradients of different variables",
                    v.name(), w);
      const any_tensor& more = replicas[r][i].gradient;
      if (!more.valid()) continue;
      total = total.valid() ? total + more : more;
    }
    if (total.valid()) total = total * (1 / static_cast<double>(replicas.size()));
  }
  return result;
}

}  // namespace deft
