// SPDX-License-Identifier: Apache-2.0
// deft/graph/function.ipp: functions written, checked and described; the graphs
// of their bodies, which take what they use from the graphs around them.
#pragma once
#include <algorithm>
#include <deft/core/hash.hpp>
#include <deft/graph/function.hpp>
#include <deft/graph/graph_state.ipp>
#include <map>

namespace deft::ext {
namespace {

/// The parameter that a node of the role `feed` stands for.
std::int64_t parameter_of(const node_def& n) {
  const auto* number = n.attributes.empty() ? nullptr : std::get_if<std::int64_t>(&n.attributes[0]);
  return number ? *number : -1;
}

void note(std::map<resource_key, function_resource>& all, const function_resource& r) {
  auto [at, fresh] = all.try_emplace(r.ref.key, r);
  at->second.updated |= r.updated;
}

}  // namespace

void function_def::seal() {
  traits = op_traits::none;
  std::map<resource_key, function_resource> all;
  std::uint64_t h = mix(parameters.size(), call);
  for (const auto& p : parameters) h = mix(h, static_cast<std::uint64_t>(p.type));
  for (const auto& n : body.nodes) {
    if (n.op->role != op_role::feed) traits = traits | traits_of(n);
    for (const auto& r : resources_of(n)) note(all, r);
    h = mix(h, hash_bytes(n.op->name.data(), n.op->name.size()));
    h = mix(h, hash_attributes(n.attributes));
    for (const auto& e : n.inputs) h = mix(h, std::uint64_t{e.node} << 8 | e.port);
  }
  for (const auto& e : results) h = mix(h, std::uint64_t{e.node} << 8 | (e.port & 0xff));
  hash = h;
  resources.clear();
  for (auto& [key, r] : all) resources.push_back(std::move(r));
}

op_traits traits_of(const op_def& op, std::span<const attr_value> attributes) {
  constexpr op_traits inherited = op_traits::stateful | op_traits::effect | op_traits::waits;
  op_traits all = op.traits;
  if (op.role == op_role::call)
    each_function(attributes, [&](const function_def& f) { all = all | (f.traits & inherited); });
  return all;
}

std::vector<function_resource> resources_of(const op_def& op,
                                            std::span<const attr_value> attributes) {
  if (op.role == op_role::call) {
    std::map<resource_key, function_resource> all;
    each_function(attributes, [&](const function_def& f) {
      for (const auto& r : f.resources) note(all, r);
    });
    std::vector<function_resource> list;
    for (auto& [key, r] : all) list.push_back(std::move(r));
    return list;
  }
  std::vector<function_resource> list;
  const bool updates = op.role == op_role::assign || op.role == op_role::update;
  if (op.resources)
    for (auto& r : op.resources(attributes)) list.push_back({std::move(r), updates});
  return list;
}

void validate(const function_def& f) {
  validate(f.body);
  for (const auto& n : f.body.nodes) {
    if (n.op->role != op_role::feed) continue;
    const std::int64_t number = parameter_of(n);
    const bool known = number >= 0 && static_cast<std::size_t>(number) < f.parameters.size();
    if (!known || !(f.parameters[static_cast<std::size_t>(number)] == n.outputs[0]))
      throw error(
          errc::invalid_argument,
          str("[function] \"", f.name, "\" has no parameter ", number, " of ", n.outputs[0]),
          n.name, n.location);
  }
  validate(f.body, f.results);
  if (!std::ranges::is_partitioned(f.results, [](const edge_def& e) { return e.port != run_only; }))
    fail(errc::invalid_argument, "[function] \"", f.name, "\" has values after its operations");
}

std::vector<tensor_type> result_types(std::string_view op, const function_def& f,
                                      std::span<const tensor_type> arguments) {
  if (arguments.size() != f.parameters.size())
    fail(errc::invalid_argument, "[", op, "] \"", f.name, "\" takes ", f.parameters.size(),
         " arguments, not ", arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].type != f.parameters[i].type ||
        !may_equal(f.parameters[i].shape, arguments[i].shape))
      fail(errc::invalid_argument, "[", op, "] argument ", i + 1, " of \"", f.name, "\" is ",
           arguments[i], "; it takes ", f.parameters[i]);
  std::vector<tensor_type> types;
  for (const edge_def& e : f.results)
    if (e.port != run_only) types.push_back(f.body.nodes[e.node].outputs[e.port]);
  return types;
}

/// Each call of a function that is stateful has its own number: it draws its own random numbers,
/// and is no call that is already there.
void graph_state::number_calls(node_request& r) {
  if (r.def->role != op_role::call) return;
  bool stateful = false;
  each_function(r.attributes, [&](const function_def& f) {
    stateful |= is_one_of(f.traits, op_traits::stateful);
  });
  if (!stateful) return;
  graph_state& g = outermost();
  std::uint64_t number = 0;
  {
    std::lock_guard lock(g.guard);
    number = ++g.next_random;
  }
  change_functions(r.attributes, [&](function_def& f) { f.call = number; });
}

namespace {

output fed_output(graph_state& g, std::size_t number, const tensor_type& t, source_location w) {
  const scope_ref nowhere;
  fed_value value = fed(number, t);
  return {g.add({.def = value.op,
                 .attributes = std::move(value.attributes),
                 .location = w,
                 .scope = &nowhere}),
          0};
}

}  // namespace

output graph_state::variable_inside(const node_ref& v) {
  const resource_key key = v->def->resources(v->attributes).front().key;
  body_state::use& use = body->uses[key];
  const bool first = !use.updated;
  if (first && use.read) return {use.read, 0};
  const scope_ref nowhere;
  node_ref made = add({.def = first ? v->def : find_op("read_variable"),
                       .attributes = v->attributes,
                       .location = v->location(),
                       .scope = &nowhere,
                       .device = v->device(),
                       .keeps = v});
  if (first) body->uses[key].read = made;
  return {std::move(made), 0};
}

output graph_state::inside(const output& o) {
  if (!o || o.node->owner() == this || !is_inside(*o.node->owner())) return o;
  if (o.node->def->role == op_role::variable) return variable_inside(o.node);
  for (const auto& c : body->captured)
    if (c.written == o) return {c.parameter, 0};
  if (o.node->outputs.empty()) return o;  // which is refused
  if (o.node->def->role == op_role::constant && o.node->controls().empty()) {
    const scope_ref nowhere;
    return {add({.def = o.node->def,
                 .attributes = o.node->attributes,
                 .location = o.node->location(),
                 .scope = &nowhere,
                 .device = o.node->device()}),
            0};
  }
  const output value = body->outer->inside(o);
  const output parameter =
      fed_output(*this, body->parameters + body->captured.size(), o.type(), o.node->location());
  body->captured.push_back({o, value, parameter.node});
  return parameter;
}

/// What a body's node uses of the graphs around it becomes a parameter, or is done in the body;
/// what it does to a resource comes after what the body has done before.
node_ref graph_state::add_to_body(node_request&& r, const scope_ref& s) {
  if (body->ended)
    fail(errc::failed_precondition, "[", r.def->name, "] the body of \"", body->name,
         "\" is written: only its results can be used outside");
  if (r.variable)
    throw error(errc::failed_precondition,
                str("[variable] \"", r.variable->name, "\" is made in the body of \"", body->name,
                    "\": make it outside, and use it there"),
                r.variable->name, r.location);
  std::vector<output> inputs;
  for (const auto& i : r.inputs) inputs.push_back(inside(i));
  r.inputs = inputs;
  std::vector<node_ref> controls;
  auto add_once = [](std::vector<node_ref>& to, const node_ref& n) {
    if (std::ranges::find(to, n) == to.end()) to.push_back(n);
  };
  for (const auto& c : controls_of(s))
    add_once(is_inside(*c->owner()) ? body->controls : controls, c);
  const op_traits traits = traits_of(*r.def, r.attributes);
  const auto used = resources_of(*r.def, r.attributes);
  const bool has_effect = is_one_of(traits, op_traits::effect);
  if (r.def->role != op_role::variable)
    for (const auto& u : used) {
      const body_state::use& before = body->uses[u.ref.key];
      if (before.updated) add_once(controls, before.updated);
      if (u.updated || has_effect)
        for (const auto& n : before.since) add_once(controls, n);
    }
  node_ref made = add_here(std::move(r), s, controls);
  if (made->def->role != op_role::variable)
    for (const auto& u : used) {
      body_state::use& use = body->uses[u.ref.key];
      if (u.updated || has_effect)
        use.updated = made, use.since.clear();
      else
        add_once(use.since, made);
    }
  if (has_effect) body->effects.push_back(made);
  return made;
}

function_body::function_body(std::string name) : name_(std::move(name)) {
  graph_state& around = *current_graph().state_;
  body_.state_->body =
      std::make_unique<body_state>(body_state{.name = name_, .outer = around.shared_from_this()});
  current_.emplace(body_);
}

function_body::~function_body() { end(); }

/// The body refers to its nodes, which keep it.
void function_body::end() {
  current_.reset();
  body_state& body = *body_.state_->body;
  body.ended = true;
  body.captured.clear();
  body.controls.clear();
  body.effects.clear();
  body.uses.clear();
}

output function_body::parameter(const tensor_type& t, source_location w) {
  body_state& body = *body_.state_->body;
  if (!body.captured.empty())
    fail(errc::failed_precondition, "[function] a parameter of \"", name_,
         "\" is made after the body has captured a value");
  const output made = fed_output(*body_.state_, body.parameters++, t, w);
  parameters_.push_back(t);
  return made;
}

written_function function_body::finish(std::span<const output> results) {
  body_state& body = *body_.state_->body;
  std::vector<output> wanted;
  for (const auto& r : results) {
    if (!r) fail(errc::failed_precondition, "[function] a result of \"", name_, "\" is empty");
    wanted.push_back(body_.state_->inside(r));
    if (wanted.back().node->owner() != body_.state_.get())
      throw error(errc::invalid_argument,
                  str("[function] a result of \"", name_, "\" is of another graph"),
                  name_of(*r.node), r.node->location());
    if (r.node->outputs.empty())
      throw error(errc::invalid_argument,
                  str("[function] a result of \"", name_, "\" is an operation without a value"),
                  name_of(*r.node), r.node->location());
  }
  for (const auto& n : body.effects) wanted.push_back({n, run_only});
  auto made = std::make_shared<function_def>();
  made->name = name_;
  made->parameters = parameters_;
  flat_graph flat = flatten(wanted, {});
  made->body = std::move(flat.graph);
  made->results = std::move(flat.fetches);
  written_function w;
  // Only the captured values that are used are parameters.
  std::vector<std::int64_t> number(body.captured.size(), -1);
  for (auto& n : made->body.nodes) {
    if (n.op->role != op_role::feed) continue;
    const std::int64_t before = parameter_of(n) - static_cast<std::int64_t>(parameters_.size());
    if (before < 0) continue;
    const auto& captured = body.captured[static_cast<std::size_t>(before)];
    std::int64_t& now = number[static_cast<std::size_t>(before)];
    if (now < 0) {
      now = static_cast<std::int64_t>(made->parameters.size());
      made->parameters.push_back(n.outputs[0]);
      w.captured.push_back(captured.value);
    }
    n.attributes = {now, n.attributes[1], n.attributes[2]};
  }
  made->seal();
  w.function = std::move(made);
  w.controls = body.controls;
  end();
  return w;
}

}  // namespace deft::ext
