// SPDX-License-Identifier: Apache-2.0
// deft/train/optimizer.ipp: gradients to updates.
#pragma once
#include <deft/op/catalog.hpp>
#include <deft/plan/gradients.hpp>
#include <deft/train/optimizer.hpp>
#include <optional>

namespace deft {
namespace {

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

}  // namespace

std::vector<gradient_of_variable> optimizer::compute_gradients(const any_tensor& loss) const {
  std::vector<gradient_of_variable> result;
  std::vector<any_tensor> xs;
  for (auto& v : graph::of(*loss.handle().node).variables()) {
    // An integer has no gradient.
    if (!v->variable()->trainable || !is_floating(v->outputs[0].type)) continue;
    xs.emplace_back(output{v, 0});
    result.push_back({std::move(v), {}});
  }
  auto g = plan::gradients(loss, xs);
  for (std::size_t i = 0; i < g.size(); ++i) result[i].gradient = std::move(g[i]);
  return result;
}

operation optimizer::apply_gradients(const std::vector<gradient_of_variable>& gradients,
                                     const variable<std::int64_t>* step, source_place w) const {
  std::vector<node_ref> updates;
  for (const auto& [v, g] : gradients)
    if (g.valid()) updates.push_back(update(v, g, w).handle());
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
  return apply_gradients(compute_gradients(loss), step, w);
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
