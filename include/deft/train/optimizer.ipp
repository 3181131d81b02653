// SPDX-License-Identifier: Apache-2.0
// deft/train/optimizer.ipp: gradients to updates.
#pragma once
#include <cmath>
#include <deft/op/catalog.hpp>
#include <deft/op/gradients.hpp>
#include <deft/op/group.hpp>
#include <deft/train/optimizer.hpp>
#include <deft/train/slots.hpp>
#include <optional>

namespace deft {

any_tensor hyperparameter::as(dtype type) const {
  if (tensor_.valid()) return cast(tensor_, type);
  return ext::visit_dtype(type, [&]<class T>() {
    const T value = static_cast<T>(value_);
    if (!std::isfinite(static_cast<double>(value)))
      ext::fail(errc::invalid_argument,
                "[optimizer] expects a finite number as a hyperparameter, and got ", value_, " as ",
                type);
    return any_tensor(constant(ndarray<T>(any_array::scalar(value))));
  });
}

void hyperparameter::expect_scalar(ext::source_location w) const {
  if (!tensor_.valid())
    throw error(errc::invalid_argument, "[optimizer] the tensor of a hyperparameter is empty", {},
                w);
  if (tensor_.rank() != 0 || !ext::is_floating(tensor_.type()))
    throw error(
        errc::invalid_argument,
        ext::str("[optimizer] expects a number or a floating scalar as a hyperparameter, and "
                 "got ",
                 tensor_.handle().type()),
        name_of(tensor_), w);
}

std::vector<any_variable> trainable_variables(graph g) {
  std::vector<any_variable> result;
  for (const ext::node_ref& v : g.variables())
    // An integer has no gradient.
    if (v->variable()->trainable && ext::is_floating(v->outputs[0].type)) result.emplace_back(v);
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
  const std::vector<any_tensor> gradients = ext::plan::gradients(scaled(loss), xs);
  std::vector<gradient_of_variable> result;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const any_tensor& g = gradients[i];
    result.push_back({variables[i], g.valid() ? unscaled(g) : g});
  }
  return result;
}

operation optimizer::apply(const std::vector<gradient_of_variable>& gradients,
                           const variable<std::int64_t>* step, ext::source_location w) const {
  const ext::location_scope on_behalf(w);
  std::optional<ext::graph_scope> in_graph;  // whatever this thread's current graph is
  if (!gradients.empty()) in_graph.emplace(graph::of(*gradients[0].variable.handle().node));
  std::vector<ext::node_ref> updates;
  const bool waits = !ext::controls_of(ext::current_scope()).empty();
  for (const auto& [v, g] : gradients) {
    if (!g.valid()) continue;
    const detail::placed_with there(v);
    // What all of this is written after, the gradient waits for, and the update for the gradient:
    // it still reads the variable and its slots as they are before it.
    const auto ready = [waits](const any_tensor& t) { return waits ? any_tensor(identity(t)) : t; };
    const auto slices = detail::slices_of(g);
    const any_tensor given = ready(slices ? slices->rows : g);
    const any_tensor indices = slices ? ready(slices->indices) : any_tensor();
    const ext::scope without_controls(ext::push_controls{nullptr});
    const any_tensor values = cast(given, update_target(v).type());
    updates.push_back((slices ? update_rows(v, indices, values) : update(v, values)).handle());
  }
  if (updates.empty())
    throw error(errc::invalid_argument, "[minimize] the loss depends on no trainable variable", {},
                w);
  ext::control_scope after(updates);
  if (!step) return no_op(w);
  return step->assign_add(std::int64_t{1}, w);
}

operation optimizer::minimize_any(const any_tensor& loss,
                                  const std::vector<any_variable>* variables,
                                  const variable<std::int64_t>* step,
                                  ext::source_location w) const {
  if (loss.rank() != 0)
    throw error(errc::invalid_argument,
                ext::str("[minimize] expects a scalar loss, and got ", loss.handle().type(),
                         ": use mean(loss), or sum(loss)"),
                name_of(loss), w);
  return apply(variables ? compute_gradients(loss, *variables) : compute_gradients(loss), step, w);
}

any_variable update_target::master() const {
  return detail::slot_of(variable_, "master", dtype::float32, 0);
}

any_tensor update_target::read(const any_variable& v) const {
  return indices_.valid() ? any_tensor(gather(any_tensor(v), indices_)) : any_tensor(v);
}

update_target::operator any_tensor() const {
  const any_tensor value = read(variable_);
  if (!is_half()) return value;
  // Where something else has set the variable, it begins anew from there.
  const any_tensor kept = read(master());
  return where(cast(kept, value.type()) == value, kept, cast(value, dtype::float32));
}

template <class Op>
update_target::updated update_target::write(const any_variable& v, const any_tensor& value) const {
  // Where extents are known only at run time, a plan has to be told which are equal.
  const std::string extents_of = v.shape().is_static() ? ""
                                 : slot_of_.empty()    ? variable_.name()
                                                       : slot_of_;
  const any_tensor made(detail::update<Op>(v.handle(), value.handle(), {}, extents_of));
  return {operation(made.handle().node), made};
}

update_target::updated update_target::replace(const any_variable& v,
                                              const any_tensor& value) const {
  if (!indices_.valid()) return write<op::assign>(v, value);
  updates_->push_back(scatter_update(v, indices_, value));
  return {updates_->back(), value};
}

update_target::updated update_target::assign(const any_tensor& value) const {
  const any_tensor now =
      condition_.valid() ? any_tensor(where(condition_, value, any_tensor(*this))) : value;
  if (!is_half()) return replace(variable_, now);
  const updated kept = replace(master(), now);
  const operation rounded = replace(variable_, cast(kept.value(), variable_.type()));
  return {group(kept, rounded), kept.value()};
}
update_target::updated update_target::assign_add(const any_tensor& value) const {
  if (indices_.valid() || is_half() || condition_.valid()) return assign(any_tensor(*this) + value);
  return write<op::assign_add>(variable_, value);
}
update_target::updated update_target::assign_sub(const any_tensor& value) const {
  if (indices_.valid() || is_half() || condition_.valid()) return assign(any_tensor(*this) - value);
  return write<op::assign_sub>(variable_, value);
}

update_target update_target::slot(std::string_view name, double value) const {
  return {detail::slot_of(variable_, name, type(), value), *this};
}
update_target update_target::scalar_slot(std::string_view name, double value) const {
  update_target whole = *this;
  whole.indices_ = {}, whole.updates_ = nullptr;
  return {detail::slot_of(variable_, name, {dims{}, dtype::float64}, value), whole};
}
update_target update_target::only_if(any_tensor condition) const {
  update_target same = *this;
  same.condition_ = std::move(condition);
  return same;
}

operation optimizer::update_rows(const any_variable& v, const any_tensor& indices,
                                 const any_tensor& rows) const {
  std::vector<operation> updates;
  updates.push_back(update(update_target(v, indices, updates), ext::sum_rows(rows, indices)));
  return group(updates);
}

std::vector<gradient_of_variable> average_gradients(
    const std::vector<std::vector<gradient_of_variable>>& replicas, ext::source_location w) {
  if (replicas.empty()) return {};
  const ext::location_scope on_behalf(w);
  std::vector<gradient_of_variable> result = replicas[0];
  auto refuse = [&](std::string name) {
    throw error(errc::invalid_argument,
                "[average_gradients] the replicas have gradients of different variables",
                std::move(name), w);
  };
  for (const auto& r : replicas)
    if (r.size() != result.size()) refuse({});
  for (std::size_t i = 0; i < result.size(); ++i) {
    auto& [v, total] = result[i];
    std::vector<any_tensor> parts;
    if (total.valid()) parts.push_back(total);
    for (std::size_t r = 1; r < replicas.size(); ++r) {
      if (!(replicas[r][i].variable.handle() == v.handle())) refuse(v.name());
      const any_tensor& more = replicas[r][i].gradient;
      if (more.valid()) parts.push_back(more);
    }
    if (parts.empty()) continue;
    total = detail::sum_of_slices(parts);
    if (!total.valid()) {
      total = parts[0];
      for (std::size_t p = 1; p < parts.size(); ++p) total = total + parts[p];
    }
    total = detail::each_value(total, [&](const any_tensor& x) {
      return any_tensor(x * (1 / static_cast<double>(replicas.size())));
    });
  }
  return result;
}

}  // namespace deft
