// SPDX-License-Identifier: Apache-2.0
// deft/graph/node_text.ipp: programs and attributes as text.
#pragma once
#include <algorithm>
#include <deft/graph/node_text.hpp>
#include <deft/graph/program.hpp>

namespace deft::ext {
namespace {

/// How tightly an operator binds, as in C++.
struct operator_text {
  std::string_view name, symbol;
  int binds;
};
constexpr operator_text infix_operators[] = {
    {"mul", " * ", 6},         {"div", " / ", 6},        {"mod", " % ", 6},
    {"add", " + ", 5},         {"sub", " - ", 5},        {"less", " < ", 4},
    {"less_equal", " <= ", 4}, {"greater", " > ", 4},    {"greater_equal", " >= ", 4},
    {"equal", " == ", 3},      {"not_equal", " != ", 3}, {"logical_and", " && ", 2},
    {"logical_or", " || ", 1}, {"neg", "-", 7},          {"logical_not", "!", 7},
};
constexpr int is_whole = 9;  ///< a name, a number or a call

struct bound_text {
  std::string text;
  int binds = is_whole;

  std::string within(int other) const { return binds < other ? "(" + text + ")" : text; }
};

/// The operation as text, applied to the names of its operands.
bound_text apply_text(const instruction& c, std::span<const bound_text> args) {
  const auto op = std::ranges::find(infix_operators, c.op->name, &operator_text::name);
  if (op != std::end(infix_operators) && args.size() == 2)
    return {args[0].within(op->binds) + std::string(op->symbol) + args[1].within(op->binds + 1),
            op->binds};
  if (op != std::end(infix_operators) && args.size() == 1)
    return {std::string(op->symbol) + args[0].within(op->binds), op->binds};
  std::string name(c.op->name);
  if (name == "cast") name += str("<", c.type, ">");
  if (c.leaves == extent_class::row) name = "row_" + name;
  if (c.leaves == extent_class::column) name = "column_" + name;
  return {str(name, "(", join(args, ", ", [](const bound_text& a) { return a.text; }), ")")};
}

/// A program over `operands`, the names of its inputs and of its immediates.
std::string program_text(const program& p, std::vector<bound_text> operands) {
  std::vector<int> uses(p.values());
  for (const auto& c : p.code)
    for (int i = 0; i < c.count; ++i) ++uses[c.args[i]];
  for (const auto& o : p.outputs) ++uses[o.value];
  std::vector<bound_text>& values = operands;
  std::string named;
  int names = 0;
  for (const auto& c : p.code) {
    std::vector<bound_text> args;
    for (int i = 0; i < c.count; ++i) args.push_back(values[c.args[i]]);
    bound_text made = apply_text(c, args);
    if (uses[values.size()] > 1) {
      named += str("t", ++names, " = ", made.text, "; ");
      made = {str("t", names)};
    }
    values.push_back(std::move(made));
  }
  if (!p.is_region()) return named + values.back().text;
  return named +
         join(p.outputs, ", ", [&](const program_output& o) { return values[o.value].text; });
}

/// Attributes worth printing: neither empty nor 0.
std::string attributes_text(const node_def& n) {
  std::string s;
  for (std::size_t i = 0; i < std::min(n.attributes.size(), n.op->attributes.size()); ++i) {
    const attr_value& v = n.attributes[i];
    const auto* list = std::get_if<integers>(&v);
    const auto* number = std::get_if<std::int64_t>(&v);
    if ((list && list->empty()) || (number && *number == 0)) continue;
    std::string value = to_string(v);
    std::erase(value, '\n');  // between an array's rows, which begin with a space
    s += str(s.empty() ? "" : ", ", n.op->attributes[i], " = ", value);
  }
  return s;
}

std::string shortened(std::string s, std::size_t most) {
  if (s.size() <= most) return s;
  while (most > 0 && (static_cast<unsigned char>(s[most]) & 0xc0) == 0x80)
    --most;  // within a letter
  return s.substr(0, most) + "…";
}

}  // namespace

std::string expression_text(const graph_def& g, const node_def& n) {
  constexpr std::size_t most = 300, most_inputs = 12;
  std::vector<bound_text> operands;
  std::string updated;
  if (n.op->resources)
    for (const auto& r : n.op->resources(n.attributes)) {
      updated += str(updated.empty() ? "" : ", ", r.key.name);
      if (n.op->role == op_role::update && program_in(n.attributes))
        operands.push_back({r.key.name});
    }
  std::size_t shown = 0;
  const program* p = program_in(n.attributes);
  for (auto e : n.inputs) {
    if (!p && shown++ == most_inputs) {
      operands.push_back({str("… ", n.inputs.size() - most_inputs, " more")});
      break;
    }
    const node_def& from = g.nodes[e.node];
    operands.push_back({e.port ? str(from.name, ":", e.port) : from.name.str()});
  }
  if (p) {
    // Literals that are not inputs.
    const auto* bits = n.attributes.empty()
                           ? nullptr
                           : std::get_if<integers>(&n.attributes[n.attributes.size() - 1]);
    const std::size_t all = p->inputs.size() + p->immediates.size();
    for (std::size_t i = 0; bits && i < bits->size() && operands.size() < all; ++i)
      operands.push_back({str(literal_value(p->immediates.at(i), (*bits)[i]))});
    operands.resize(all, {"?"});
    std::string text = program_text(*p, std::move(operands));
    for (std::size_t i = 0; i < std::min(n.attributes.size(), n.op->attributes.size()); ++i)
      if (const auto* how = std::get_if<std::string>(&n.attributes[i]);
          how && n.op->attributes[i] == "reduction")
        text = str(*how, "(", text, ")");
    return shortened((updated.empty() ? "" : updated + " = ") + text, most);
  }
  if (n.op->is(op_traits::elementwise) && !n.op->resources && operands.size() <= 3)
    return shortened(
        apply_text({.op = n.op, .type = n.outputs.empty() ? dtype::none : n.outputs[0].type},
                   operands)
            .text,
        most);
  const std::string inputs = join(operands, ", ", [](const bound_text& o) { return o.text; });
  if (n.op->role == op_role::assign) return shortened(updated + " = " + inputs, most);
  if (n.op->role == op_role::update && n.op->joins) {
    const auto op = std::ranges::find(infix_operators, n.op->joins->name, &operator_text::name);
    if (op != std::end(infix_operators))
      return shortened(str(updated, " ", op->symbol.substr(1, 1), "= ", inputs), most);
  }
  std::string arguments = inputs;
  if (!updated.empty()) arguments = updated + (inputs.empty() ? "" : ", " + inputs);
  if (updated.empty())
    if (const std::string with = attributes_text(n); !with.empty())
      arguments += (inputs.empty() ? "" : ", ") + with;
  const bool is_source = n.op->role == op_role::variable || n.op->role == op_role::feed ||
                         n.op->role == op_role::placeholder;
  if (arguments.empty() || is_source) return std::string(n.op->name);
  return shortened(str(n.op->name, "(", arguments, ")"), most);
}

std::int64_t bytes_of_value(const tensor_type& t) {
  if (!t.shape.is_static() || !plain_dtypes.has(t.type)) return dyn;
  return t.shape.elements() * static_cast<std::int64_t>(size_of_dtype(t.type));
}

}  // namespace deft::ext
