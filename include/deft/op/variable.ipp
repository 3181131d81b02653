// SPDX-License-Identifier: Apache-2.0
// deft/op/variable.ipp: variables: their nodes, reads and first values.
#pragma once
#include <deft/core/hash.hpp>
#include <deft/core/log.hpp>
#include <deft/op/group.hpp>
#include <deft/op/variable.hpp>
#include <optional>
#include <unordered_map>

namespace deft {
namespace detail {

output read_variable(const output& variable, source_location w) {
  if (controls_of(current_scope()).empty()) return variable;
  return at_variable(record_of<op::read_variable>, variable, variable.node->attributes, {},
                     w.known() ? w : variable.node->location().nearby());
}

output expect_variable(const node_ref& n, const tensor_type& type) {
  const tensor_type& t = any_variable(n).handle().type();
  if (t.type != type.type || !fits(type.shape, t.shape))
    throw error(errc::invalid_argument,
                str("[variable] expects a variable of ", type, ", and got ", t), name_of(*n),
                n->location());
  return {n, 0};
}

output initial_value(const node& v) {
  if (!v.variable() || !v.variable()->initial)
    throw error(errc::failed_precondition, "[variable] has no initial value", name_of(v),
                v.location());
  return v.variable()->initial;
}

operation initializer_of(const output& v, source_location w) {
  return operation(update<op::assign>(v, initial_value(*v.node), w).node);
}

void check_extents(std::string_view name, const dims& declared, const dims& extents,
                   source_location w) {
  if (!fits(declared, extents))
    throw error(errc::invalid_argument,
                str("[variable] expects extents ", declared, ", and got ", extents),
                std::string(name), w);
}

namespace {

/// `o` with every variable that it reads replaced by its first value. Nodes that do not depend on
/// one are used as they are.
output without_variables(const output& o) {
  struct frame {
    node_ref n;
    std::size_t next = 0;
  };
  std::unordered_map<const node*, output> instead;  // port 0 stands for the node
  std::vector<frame> stack;
  auto visit = [&](const node_ref& n) {
    if (instead.contains(n.get())) return;
    if (n->def == &record_of<op::variable>)
      instead.emplace(n.get(), initial_value(*n));
    else if (n->is(op_traits::effect) || n->def == &record_of<op::read_variable>)
      throw error(errc::invalid_argument,
                  str("[variable] an initial value depends on an ", n->def->name,
                      "; it may use variables, but not their updates"),
                  name_of(*n), n->location());
    else
      stack.push_back({n});
  };
  visit(o.node);
  while (!stack.empty()) {
    frame& f = stack.back();
    if (f.next < f.n->inputs().size()) {
      visit(node_ref(f.n->inputs()[f.next++].node));
      continue;
    }
    node_ref n = std::move(f.n);
    stack.pop_back();
    std::vector<output> inputs;
    bool changed = false;
    for (const auto& i : n->inputs()) {
      const output& to = instead.at(i.node.get());
      bool is_variable = i.node->def == &record_of<op::variable>;
      inputs.push_back(is_variable ? to : output{to.node, i.port});
      changed |= !(inputs.back() == i);
    }
    if (changed) {
      scope outside{scope_ref()};
      const auto waits = n->controls();
      control_scope after({waits.begin(), waits.end()});
      instead[n.get()] = {graph::of(*n).add({.def = n->def,
                                             .attributes = n->attributes,
                                             .inputs = inputs,
                                             .location = n->location(),
                                             .device = n->device()}),
                          0};
    } else
      instead[n.get()] = {n, 0};
  }
  const output& to = instead.at(o.node.get());
  return o.node->def == &record_of<op::variable> ? to : output{to.node, o.port};
}

}  // namespace

const variable_options& default_options() {
  static const auto& options = *new variable_options;
  return options;
}

output make_variable(std::string_view name, const tensor_type& type, const initializer& initial,
                     const variable_options& options, source_location w) {
  graph g = current_graph();
  if (name.empty()) throw error(errc::invalid_argument, "[variable] expects a name", {}, w);
  try {
    op::expect_extents("variable", type.shape, true);  // before its initial value has them
  } catch (const error& e) {
    throw error(e.code(), e.message(), std::string(name), w);
  }
  const scope_ref around = current_scope();
  std::string full = (around ? around->name_prefix : std::string()) + std::string(name);
  // Asked once: a device function may count its calls.
  placement device_of_it =
      resolve_device(around, {op::variable::name, full, type.type, op::variable::role});
  scope without_controls(push_controls{nullptr});

  auto info = std::make_unique<variable_info>();
  info->name = full;
  info->trainable = options.trainable;
  {
    scope anywhere(device(nullptr));
    std::optional<scope> there;
    if (device_of_it) there.emplace(device(*device_of_it));
    const std::string prefix = full + "/";
    std::optional<scope> named;
    try {
      named.emplace(push_name{prefix});
    } catch (const error&) {
      throw error(errc::invalid_argument,
                  str("[variable] \"", name,
                      "\" is not a valid name: it may have letters, digits and \"_.-/>\", and "
                      "begins with a letter, a digit or '.'"),
                  {}, w);
    }
    any_tensor value;
    try {
      value = initial({type.type, type.shape, mix(g.seed(), hash_text(full)), w});
    } catch (const error& e) {
      if (e.where().known()) throw;
      throw error(e.code(), e.message(), full, w);  // a literal
    }
    if (value.type() != type.type || !may_equal(type.shape, value.shape()))
      throw error(
          errc::invalid_argument,
          str("[variable] expects an initial value of ", type, ", and got ", value.handle().type()),
          full, w);
    if (!(graph::of(*value.handle().node) == g))
      throw error(errc::invalid_argument, "[variable] its initial value belongs to another graph",
                  full, w);
    info->initial = without_variables(value.handle());
  }
  op::variable o;
  o.container = options.container;
  o.variable_name = full;
  o.type = type.type;
  o.shape = type.shape;
  return {ext::add_node(g, o,
                        {.location = w,
                         .name = std::string(name),
                         .variable = std::move(info),
                         .device = device_of_it}),
          0};
}

namespace {

/// The variable that `v` reads.
output variable_of(const any_tensor& v, std::string_view operation_name) {
  node_ref n = v.handle().node;
  if (n->def == &record_of<op::read_variable>) n = n->keeps();
  if (!n || n->def != &record_of<op::variable>)
    throw error(errc::invalid_argument,
                str("[", operation_name, "] expects a variable, and got another tensor"),
                name_of(v), v.handle().node->location());
  return {n, 0};
}

}  // namespace
}  // namespace detail

any_variable::any_variable(const ext::node_ref& n) : output_{n, 0} {
  if (!n || n->def != &ext::record_of<op::variable>)
    ext::fail(errc::not_found, "[variable] expects a variable of a graph, and got ",
              n ? ext::str("the ", n->def->name, " \"", name_of(*n), "\"")
                : "none: the graph has no variable of that name");
}

const std::string& any_variable::name() const { return handle().node->variable()->name; }

ext::node_ref any_variable::make(std::string_view name, const ext::tensor_type& type,
                                 const deft::initializer& initial, const variable_options& options,
                                 ext::source_location w) {
  if (!type.shape.is_static())
    throw error(errc::invalid_argument,
                ext::str("[variable] expects known extents, and got ", type.shape),
                std::string(name), w);
  return detail::make_variable(name, type, initial, options, w).node;
}

ext::placement detail::processor_of(const any_variable& v) {
  const ext::placement there = v.handle().node->device();
  return there ? ext::intern(ext::host_of(*there)) : there;
}

operation initialize_all(ext::source_location w) {
  std::vector<ext::node_ref> assigns;
  const auto variables = current_graph().variables();
  if (variables.empty())
    logging::warning("initialize_all", w.known() ? ext::str(" ", ext::where_of(w)) : std::string(),
                     ": the graph that is current in this thread has no variables; auto scope = "
                     "as_default(graph_of(t)) makes the graph of a tensor t current");
  for (const auto& v : variables)
    assigns.push_back(detail::update<op::assign>({v, 0}, detail::initial_value(*v), w).node);
  return detail::make_group(std::move(assigns), w);
}

ext::assigned<any_tensor> assign(const any_tensor& v, const any_tensor& value,
                                 ext::source_location w) {
  return ext::assigned<any_tensor>(
      detail::update<op::assign>(detail::variable_of(v, "assign"), value.handle(), w));
}
ext::assigned<any_tensor> assign_add(const any_tensor& v, const any_tensor& value,
                                     ext::source_location w) {
  return ext::assigned<any_tensor>(
      detail::update<op::assign_add>(detail::variable_of(v, "assign_add"), value.handle(), w));
}
ext::assigned<any_tensor> assign_sub(const any_tensor& v, const any_tensor& value,
                                     ext::source_location w) {
  return ext::assigned<any_tensor>(
      detail::update<op::assign_sub>(detail::variable_of(v, "assign_sub"), value.handle(), w));
}

}  // namespace deft
