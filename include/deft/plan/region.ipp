// SPDX-License-Identifier: Apache-2.0
// deft/plan/region.ipp: what a fold is in a region, and the program that a region becomes.
#pragma once
#include <algorithm>
#include <array>
#include <deft/op/base/reduction.hpp>
#include <deft/op/constant.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>
#include <deft/plan/region.hpp>
#include <deft/plan/thresholds.hpp>
#include <unordered_map>

namespace deft::ext::plan {

const program* expression_in(const node_def& n) {
  const program* p = n.op->role == op_role::compute ? program_in(n.attributes) : nullptr;
  return p && !p->is_region() ? p : nullptr;
}
bool is_literal(const node_def& n) {
  return n.op->role == op_role::constant && n.controls.empty() && n.outputs[0].shape.rank() == 0;
}
bool keeps_dims(const node_def& fold) { return decode<op::reduction>(fold.attributes).keepdims; }

std::optional<fold_shape> shape_of_fold(const graph_def& g, const node_def& n) {
  const dims axes = decode<op::reduction>(n.attributes).axes;
  const dims& x = g.nodes[n.inputs[0].node].outputs[n.inputs[0].port].shape;
  const int rank = x.rank(), count = axes.size();
  if (count == 0) return {};
  if (count == rank) return fold_shape{extent_class::whole, 0};
  const bool rows = axes[0] != 0;
  std::int64_t elements = 1;  // of a row
  for (int d = rows ? rank - count : count; d < rank; ++d) {
    if (axes.contains(d) != rows || x[d] == dyn) return {};
    elements *= x[d];
  }
  // A row's values wait for each other, and those of columns for all rows.
  if (elements <= 1 || (!rows && elements > thresholds::most_columns)) return {};
  return rows ? fold_shape{extent_class::row, count}
              : fold_shape{extent_class::column, rank - count};
}

extent_class class_of(const graph_def& g, const group& of, std::uint32_t m) {
  const node_def& n = g.nodes[m];
  if (is_fold(n)) return shape_of_fold(g, n)->leaves;
  return n.outputs[0].shape == of.extents ? extent_class::element : extent_class::row;
}
node_numbers updates_of(const group& of) {
  node_numbers all;
  if (!of.updates) return all;
  all.push_back(of.root);
  all.insert(all.end(), of.outputs.begin(), of.outputs.end());
  return all;
}
resource_ref resource_of(const node_def& update) {
  return update.op->resources(update.attributes).front();
}
bool is_old_value(const node_def& n, const node_def& update, const update_counts& updates) {
  if (n.op->role != op_role::variable || !n.controls.empty()) return false;
  const resource_key key = resource_of(n).key;
  return key == resource_of(update).key && updates.at(key) == 1;
}

namespace {

/// Writes the program of a group into its root. Nodes are visited in the order of put_tokens() in
/// expr/lower.hpp, so that a region that the user also wrote as one expression finds its compiled
/// kernel. An expression in the region stays a piece of it.
class region_writer {
 public:
  region_writer(graph_def& g, const group& of, const update_counts& counts, moved_values& moved)
      : graph_(g),
        of_(of),
        counts_(counts),
        moved_(moved),
        is_region_(is_fold(g.nodes[of.root]) || of.row_axes > 0 || !of.outputs.empty()) {}

  void write() {
    for (auto u : updates_of(of_))
      updates_.push_back({u, program_.input(node(u).outputs[0].type), {}, needed_by(u)});
    visit(of_.root);
    for (auto m : of_.outputs) visit(m);
    node_def& root = graph_.nodes[of_.root];
    if (is_region_) root.outputs = put_outputs();
    root.inputs = std::move(inputs_);
    updates_.empty() ? become_expression(root) : become_update(root);
  }

 private:
  using value = program_builder::value;

  /// An update in the region.
  struct update {
    std::uint32_t node;
    value variable;                  ///< before the update
    value operand;                   ///< what is assigned, or joins the variable
    std::set<std::uint32_t> before;  ///< the members that may use the variable's old value
  };
  struct value_hash {
    std::size_t operator()(const edge_def& e) const {
      return std::size_t{e.node} * program::most_outputs + e.port;
    }
  };

  const node_def& node(std::uint32_t n) const { return graph_.nodes[n]; }

  /// Computes a member, and first the members that it needs, operand by operand.
  void visit(std::uint32_t member) {
    struct visited {
      std::uint32_t node;
      std::vector<value> args;
    };
    if (done_.contains(member)) return;
    std::vector<visited> stack{{member, {}}};
    while (!stack.empty()) {
      visited& v = stack.back();
      const node_def& n = node(v.node);
      if (v.args.size() == n.inputs.size()) {
        done_.emplace(v.node, compute(v.node, std::move(v.args)));
        stack.pop_back();
      } else if (const edge_def e = n.inputs[v.args.size()];
                 const auto known = operand(v.node, e)) {
        v.args.push_back(*known);
      } else {
        stack.push_back({e.node, {}});
      }
    }
  }

  /// The value of an input of `user`; none for a member that has not been computed.
  std::optional<value> operand(std::uint32_t user, edge_def e) {
    const node_def& from = node(e.node);
    for (const update& u : updates_)
      if (is_old_value(from, node(u.node), counts_) && u.before.contains(user)) return u.variable;
    if (const auto at = done_.find(e.node); at != done_.end()) return at->second;
    if (of_.has(e.node)) return {};
    if (is_literal(from) && !expression_in(node(user)) && !is_fold(node(user)))
      return literal(decode<op::constant>(from.attributes).value);
    if (const auto at = known_.find(e); at != known_.end()) return at->second;
    inputs_.push_back(e);
    const value made = program_.input(from.outputs[e.port].type);
    if (is_region_) known_.emplace(e, made);
    return made;
  }

  value compute(std::uint32_t member, std::vector<value> args) {
    const node_def& n = node(member);
    const dtype type = n.outputs[0].type;
    if (expression_in(n)) return inline_expression(n, std::move(args));
    if (is_fold(n)) return program_.fold(*n.op, type, args[0], class_of(graph_, of_, member));
    const auto u = std::ranges::find(updates_, member, &update::node);
    if (u == updates_.end()) return program_.apply(*n.op, type, args);
    u->operand = args[0];
    const value both[] = {u->variable, args[0]};
    return n.op->joins ? program_.apply(*n.op->joins, type, both) : args[0];
  }

  /// Of an expression whose operands have these values.
  value inline_expression(const node_def& n, std::vector<value> values) {
    const auto o = decode<op::fused>(n.attributes);
    const bool literals_are_inputs = values.size() > o.program->inputs.size();
    for (std::size_t i = 0; i < o.immediates.size() && !literals_are_inputs; ++i)
      values.push_back(immediate(o.program->immediates[i], o.immediates[i]));
    const std::size_t first = program_.operations();
    for (const auto& c : o.program->code) {
      std::array<value, 3> args;
      for (std::size_t a = 0; a < c.count; ++a) args[a] = values[c.args[a]];
      values.push_back(program_.apply(*c.op, c.type, std::span(args).first(c.count)));
    }
    if (!literals_are_inputs) program_.end_piece(first);  // what is compiled for it takes literals
    return values.back();
  }

  value literal(const any_array& a) {
    return visit_dtype(a.type(),
                       [&]<class T>() { return immediate(a.type(), to_immediate(a.item<T>())); });
  }
  value immediate(dtype t, std::int64_t bits) {
    immediates_.push_back(bits);
    return program_.immediate(t);
  }

  /// The types of the region's results, which take the place of their nodes' values.
  std::vector<tensor_type> put_outputs() {
    program_.row_axes(of_.row_axes);
    std::vector<tensor_type> types;
    const auto put = [&](std::uint32_t m) {
      const node_def& n = node(m);
      const extent_class where = class_of(graph_, of_, m);
      program_.output(done_.at(m), where,
                      where != extent_class::element && (!is_fold(n) || keeps_dims(n)));
      moved_[m] = edge_def{of_.root, static_cast<std::uint32_t>(types.size())};
      types.push_back(n.outputs[0]);
    };
    put(of_.root);
    for (auto m : of_.outputs) put(m);
    return types;
  }

  void become_expression(node_def& root) {
    root.op = &record_of<op::fused>;
    root.attributes = encode(op::fused{program_.finish(), std::move(immediates_)});
  }
  void become_update(node_def& root) {
    op::fused_update made;
    for (const update& u : updates_) {
      const resource_ref which = resource_of(node(u.node));
      made.containers.push_back(which.key.container);
      made.names.push_back(which.key.name);
      made.shape = which.holds.shape;
    }
    if (!made.shape.is_static())
      for (const update& u : updates_) made.operands.push_back(program_.number(u.operand));
    made.program = program_.finish();
    made.immediates = std::move(immediates_);
    root.op = &record_of<op::fused_update>;
    root.attributes = encode(made);
  }

  /// The member, and those that it needs.
  std::set<std::uint32_t> needed_by(std::uint32_t member) const {
    std::set<std::uint32_t> found{member};
    for (node_numbers stack{member}; !stack.empty();) {
      const std::uint32_t n = stack.back();
      stack.pop_back();
      for (auto e : node(n).inputs)
        if (of_.has(e.node) && found.insert(e.node).second) stack.push_back(e.node);
    }
    return found;
  }

  graph_def& graph_;
  const group& of_;
  const update_counts& counts_;
  moved_values& moved_;
  const bool is_region_;
  program_builder program_;
  integers immediates_;
  std::vector<edge_def> inputs_;
  std::vector<update> updates_;
  std::unordered_map<edge_def, value, value_hash> known_;  ///< inputs of a region
  std::unordered_map<std::uint32_t, value> done_;          ///< of members
};

}  // namespace

void write_region(graph_def& g, const group& of, const update_counts& updates,
                  moved_values& moved) {
  region_writer(g, of, updates, moved).write();
}

}  // namespace deft::ext::plan
