// SPDX-License-Identifier: Apache-2.0
// deft/train/optimizer.ipp: gradients to updates.
#pragma once
#include <deft/op/catalog.hpp>
#include <deft/plan/gradients.hpp>
#include <deft/train/optimizer.hpp>
#include <deft/train/slots.hpp>

namespace deft {

/// While it lives, nodes are placed with `n`, whatever the surrounding scopes ask for.
class placed_with {
 public:
  explicit placed_with(const node_ref& n) : outside_(push_name{""}) {
    if (n->device()) there_.emplace(device(*n->device()));
  }

 private:
  scope outside_;
  std::optional<scope> there_;
};

output updated(const op_def& def, const any_tensor& variable, const any_tensor& value,
               source_place w) {
  return detail::update(def, variable.handle(), value.handle(), w);
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
  auto in_graph = as_default(graph_of(loss));
  return apply(compute_gradients(loss), step, w);
}

any_tensor optimizer::slot(const node_ref& variable, const std::string& suffix, double value,
                           source_place w) {
  placed_with there(variable);
  const tensor_type& t = variable->outputs[0];
  std::string name = variable->variable()->name + "/" + suffix;
  // Two optimizers of one kind share the slots of a variable.
  if (node_ref made = graph::of(*variable).find_variable(name)) return any_tensor(output{made, 0});
  variable_options options;
  options.trainable = false;
  if (t.shape.is_static()) return any_tensor(detail::make_variable(name, t, value, options, w));
  const any_array scalar =
      visit_dtype(t.type, [&]<class T>() { return any_array::scalar(static_cast<T>(value)); });
  const any_tensor first(detail::filled(scalar, detail::initial_value(*variable), w));
  return any_tensor(detail::make_variable(name, t, first, options, w));
}

operation sgd::update(const node_ref& variable, const any_tensor& gradient, source_place w) const {
  placed_with there(variable);
  any_tensor v(output{variable, 0});
  return operation(updated(record_of<op::assign_sub>, v, gradient * learning_rate_, w).node);
}

operation adagrad::update(const node_ref& variable, const any_tensor& gradient,
                          source_place w) const {
  any_tensor accumulator = slot(variable, "adagrad", initial_, w);
  placed_with there(variable);
  any_tensor v(output{variable, 0});
  any_tensor sum(updated(record_of<op::assign_add>, accumulator, square(gradient), w));
  return operation(
      updated(record_of<op::assign_sub>, v, gradient * learning_rate_ / sqrt(sum), w).node);
}

}  // namespace deft
