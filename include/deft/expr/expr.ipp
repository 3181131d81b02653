// SPDX-License-Identifier: Apache-2.0
// deft/expr/expr.ipp: what expressions do that does not depend on their type.
#pragma once
#include <algorithm>
#include <deft/core/num_lane.hpp>
#include <deft/expr/feed.hpp>
#include <deft/expr/lower.hpp>
#include <deft/expr/written.ipp>

namespace deft {

tensor_type infer_elementwise(std::string_view name, typing rule,
                              std::span<const tensor_type> inputs) {
  std::size_t first = rule == typing::select ? 1 : 0;
  dtype t = inputs[first].type;
  if (rule == typing::select && inputs[0].type != dtype::boolean)
    fail(errc::invalid_argument, "[", name, "] the condition is ", inputs[0].type, ", not bool");
  for (std::size_t i = first; i < inputs.size(); ++i)
    if (inputs[i].type != t)
      fail(errc::invalid_argument, "[", name, "] the operands' dtypes differ: ", t, " and ",
           inputs[i].type, "; use cast");
  if (!accepts(rule, t)) fail(errc::invalid_argument, "[", name, "] is not defined for ", t);
  dims shape = inputs[0].shape;
  for (const auto& i : inputs.subspan(1)) {
    dims wider;
    if (!broadcast(shape, i.shape, wider))
      fail(errc::invalid_argument, "[", name,
           "] the operands' shapes cannot be broadcast together: ",
           join(inputs, " ", [](const tensor_type& v) { return v.shape; }));
    shape = wider;
  }
  return {shape, result_of(rule, t)};
}

void check_feed(const output& target, dtype type, const dims& shape) {
  const tensor_type& t = target.type();
  if (type == t.type && fits(t.shape, shape)) return;
  throw error(errc::invalid_argument,
              str("[feed] ", type, shape, " is fed where ", t, " is expected"),
              name_of(*target.node), target.node->place());
}

namespace detail {

any_tensor add_node(const op_def& def, attr_list attributes, std::span<const output> inputs,
                    source_place w, const scope_ref* s) {
  node_request r;
  r.def = &def;
  r.attributes = std::move(attributes);
  r.inputs = inputs;
  r.place = w;
  r.scope = s;
  for (const auto& i : inputs) {
    if (r.place.known()) break;
    r.place = i.node->place().nearby();
  }
  graph g = inputs.empty() ? current_graph() : graph::of(*inputs[0].node);
  for (const auto& i : inputs)
    if (i.node->owner() != inputs[0].node->owner())
      throw error(errc::invalid_argument,
                  str("[", def.name, "] the operands are of different graphs"), name_of(*i.node),
                  w);
  return any_tensor(output{g.add(std::move(r)), 0});
}

void expect_type(const output& o, const tensor_type& type) {
  const tensor_type& t = o.type();
  if (t.type != type.type || !may_equal(type.shape, t.shape))
    throw error(errc::invalid_argument, str("[tensor] ", t, " is not a tensor of ", type),
                name_of(*o.node), o.node->place());
}

any_array scalar_of(const literal& v, dtype type) {
  any_array value(type, dims{});
  visit_dtype(type, [&]<class T>() {
    std::visit(
        [&]<class S>(S s) {
          if constexpr (std::is_integral_v<T> && std::is_floating_point_v<S>)
            fail(errc::invalid_argument, "a floating literal beside a tensor of ", type, ": ", s);
          else
            *value.mutable_data<T>() = survive<T>(s);
        },
        v);
  });
  return value;
}

any_tensor literal_like(const literal& v, dtype type, source_place w) {
  return add_constant(scalar_of(v, type), w);
}

any_tensor add_constant(any_array value, source_place w) {
  static const op_def& constant = *find_op("constant");
  return add_node(constant, {std::move(value)}, {}, w);
}

}  // namespace detail
}  // namespace deft
