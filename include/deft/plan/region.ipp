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

class region_writer {
 public:
  region_writer(graph_def& g, const group& of, const update_counts& updates, moved_values& moved)
      : graph_(g), of_(of), updates_(updates), moved_(moved) {}

  /// Visits nodes in the order of put_tokens() in expr/lower.hpp, so that a region that the
  /// user also wrote as one expression finds its compiled kernel. An expression in the region stays
  /// a piece of it.
  void write() {
    using value = program_builder::value;
    program_builder p;
    integers immediates;
    std::vector<edge_def> inputs;
    std::unordered_map<edge_def, value, value_hash> known;  // inputs of a region
    std::unordered_map<std::uint32_t, value> done;
    auto literal = [&](dtype t, std::int64_t bits) {
      immediates.push_back(bits);
      return p.immediate(t);
    };
    node_def& r = graph_.nodes[of_.root];
    const bool region = is_fold(r) || of_.row_axes > 0 || !of_.outputs.empty();
    const node_numbers updates = updates_of(of_);
    std::vector<value> variables;  // before their updates
    std::vector<value> operands(updates.size());
    std::vector<std::set<std::uint32_t>> before;
    for (auto u : updates) {
      variables.push_back(p.input(node(u).outputs[0].type));
      before.push_back(needed_by(u));
    }
    // Where the node may use a variable that the region updates: not after it has been written.
    auto old_value = [&](const node_def& from, std::uint32_t user) {
      std::size_t u = 0;
      while (u < updates.size() &&
             !(is_old_value(from, node(updates[u]), updates_) && before[u].contains(user)))
        ++u;
      return u;
    };
    struct frame {
      std::uint32_t node;
      std::vector<value> args;
    };
    std::vector<frame> stack;
    auto next = of_.outputs.begin();
    auto start = [&](std::uint32_t n) {
      if (!done.contains(n)) stack.push_back({n, {}});
    };
    start(of_.root);
    while (true) {
      while (stack.empty() && next != of_.outputs.end()) start(*next++);
      if (stack.empty()) break;
      frame& f = stack.back();
      const node_def& n = node(f.node);
      if (f.args.size() < n.inputs.size()) {
        edge_def e = n.inputs[f.args.size()];
        const node_def& from = node(e.node);
        if (const auto u = old_value(from, f.node); u < updates.size()) {
          f.args.push_back(variables[u]);
        } else if (auto at = done.find(e.node); at != done.end()) {
          f.args.push_back(at->second);
        } else if (of_.has(e.node)) {
          stack.push_back({e.node, {}});
        } else if (is_literal(from) && !expression_in(n) && !is_fold(n)) {
          const any_array a = decode<op::constant>(from.attributes).value;
          f.args.push_back(visit_dtype(
              a.type(), [&]<class T>() { return literal(a.type(), to_immediate(a.item<T>())); }));
        } else if (auto seen = known.find(e); seen != known.end()) {
          f.args.push_back(seen->second);
        } else {
          inputs.push_back(e);
          f.args.push_back(p.input(from.outputs[e.port].type));
          if (region) known.emplace(e, f.args.back());
        }
        continue;
      }
      if (expression_in(n)) {
        const auto o = decode<op::fused>(n.attributes);
        std::vector<value> values = std::move(f.args);
        const bool late = values.size() > o.program->inputs.size();
        for (std::size_t i = 0; i < o.immediates.size() && !late; ++i)
          values.push_back(literal(o.program->immediates[i], o.immediates[i]));
        const std::size_t first = p.operations();
        for (const auto& c : o.program->code) {
          std::array<value, 3> args;
          for (std::size_t a = 0; a < c.count; ++a) args[a] = values[c.args[a]];
          values.push_back(p.apply(*c.op, c.type, std::span(args).first(c.count)));
        }
        if (!late) p.end_piece(first);  // what is compiled for it takes literals
        done.emplace(f.node, values.back());
      } else if (is_fold(n)) {
        done.emplace(f.node,
                     p.fold(*n.op, n.outputs[0].type, f.args[0], class_of(graph_, of_, f.node)));
      } else if (const auto u = std::ranges::find(updates, f.node); u != updates.end()) {
        const auto k = static_cast<std::size_t>(u - updates.begin());
        const value both[] = {variables[k], f.args[0]};
        operands[k] = f.args[0];
        done.emplace(f.node,
                     n.op->joins ? p.apply(*n.op->joins, n.outputs[0].type, both) : f.args[0]);
      } else {
        done.emplace(f.node, p.apply(*n.op, n.outputs[0].type, f.args));
      }
      stack.pop_back();
    }
    if (region) {
      p.row_axes(of_.row_axes);
      std::vector<tensor_type> types;
      auto put_out = [&](std::uint32_t m) {
        const node_def& n = node(m);
        const extent_class where = class_of(graph_, of_, m);
        p.output(done.at(m), where,
                 where != extent_class::element && (!is_fold(n) || keeps_dims(n)));
        moved_[m] = edge_def{of_.root, static_cast<std::uint32_t>(types.size())};
        types.push_back(n.outputs[0]);
      };
      put_out(of_.root);
      for (auto m : of_.outputs) put_out(m);
      r.outputs = std::move(types);
    }
    r.inputs = std::move(inputs);
    if (updates.empty()) {
      r.op = &record_of<op::fused>;
      r.attributes = encode(op::fused{p.finish(), std::move(immediates)});
      return;
    }
    op::fused_update u;
    for (auto m : updates) {
      const resource_ref which = resource_of(node(m));
      u.containers.push_back(which.key.container);
      u.names.push_back(which.key.name);
      u.shape = which.holds.shape;
    }
    if (!u.shape.is_static())
      for (const value v : operands) u.operands.push_back(p.number(v));
    u.program = p.finish();
    u.immediates = std::move(immediates);
    r.op = &record_of<op::fused_update>;
    r.attributes = encode(u);
  }

 private:
  struct value_hash {
    std::size_t operator()(const edge_def& e) const {
      return std::size_t{e.node} * program::most_outputs + e.port;
    }
  };

  const node_def& node(std::uint32_t n) const { return graph_.nodes[n]; }
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
  const update_counts& updates_;
  moved_values& moved_;
};

}  // namespace

void write_region(graph_def& g, const group& of, const update_counts& updates,
                  moved_values& moved) {
  region_writer(g, of, updates, moved).write();
}

}  // namespace deft::ext::plan
