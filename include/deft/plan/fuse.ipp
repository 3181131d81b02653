// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse.ipp: fusion found at run time.
#pragma once
#include <algorithm>
#include <array>
#include <deft/op/constant.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>
#include <deft/plan/fuse.hpp>
#include <deft/plan/rewrite.hpp>
#include <map>
#include <set>
#include <unordered_map>

namespace deft::plan {
namespace {

/// The program of a node that an expression became; null for other nodes, and where its literals
/// come with each run.
const program* expression_in(const node_def& n) {
  const program* p = n.op->role == op_role::compute ? program_in(n.attributes) : nullptr;
  return p && n.inputs.size() == p->inputs.size() ? p : nullptr;
}
bool fusible(const node_def& n) {
  return n.controls.empty() && (n.op->is(op_traits::elementwise) || expression_in(n));
}
/// An update that a program can stand for.
bool is_joining_update(const node_def& n) {
  return n.op->role == op_role::update && n.op->joins && n.outputs[0].shape.is_static();
}
/// What becomes of a node that takes in others.
const op_def& joined(const node_def& n) {
  return is_joining_update(n) ? record_of<op::fused_update> : record_of<op::fused>;
}
/// How many operations it adds to a program.
std::size_t operations_of(const node_def& n) {
  const program* p = expression_in(n);
  return p ? p->code.size() : 1;
}

/// Whether it computes with integers, of which an operation may refuse some: a divisor of zero.
bool may_refuse(const node_def& n) {
  const program* p = expression_in(n);
  return p ? std::ranges::any_of(p->code, [](const instruction& c) { return is_integer(c.type); })
           : is_integer(n.outputs[0].type);
}

/// A literal in the making: a constant of rank 0.
bool is_literal(const node_def& n) {
  return n.op->role == op_role::constant && n.controls.empty() && n.outputs[0].shape.rank() == 0;
}

class fuser {
 public:
  fuser(graph_def& g, std::span<edge_def> fetches,
        const std::function<bool(placement, const op_def&)>& can_run)
      : graph_(g), can_run_(can_run), users_(g.nodes.size()) {
    for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
      for (auto e : g.nodes[i].inputs) users_[e.node].push_back(i);
      // Control dependencies and fetches pin a node as it is.
      for (auto c : g.nodes[i].controls) users_[c].push_back(pinned);
    }
    for (const auto& f : fetches) users_[f.node].push_back(pinned);
    for (const auto& n : g.nodes)
      if (n.op->role == op_role::update || n.op->role == op_role::assign)
        ++updates_[n.op->resource(n.attributes).key];
  }

  bool run() {
    bool changed = false;
    std::vector<bool> taken(graph_.nodes.size());
    for (std::uint32_t root = static_cast<std::uint32_t>(graph_.nodes.size()); root-- > 0;) {
      const node_def& r = graph_.nodes[root];
      const bool update = is_joining_update(r);
      if (taken[root] || (!update && !fusible(r))) continue;
      if (can_run_ && !can_run_(r.device, joined(r))) continue;
      std::set<std::uint32_t> group = gather(root);
      const bool literals =
          !update && !expression_in(r) && std::ranges::any_of(r.inputs, [&](edge_def e) {
            return is_literal(graph_.nodes[e.node]);
          });
      if (group.size() == 1 && !literals) continue;
      for (auto n : group) taken[n] = true;
      replace(root, group);
      changed = true;
    }
    return changed;
  }

 private:
  static constexpr std::uint32_t pinned = ~std::uint32_t{0};

  std::set<std::uint32_t> gather(std::uint32_t root) const {
    const node_def& r = graph_.nodes[root];
    std::set<std::uint32_t> group{root};
    std::set<std::uint32_t, std::greater<>> candidates;
    auto offer = [&](const node_def& n) {
      for (auto e : n.inputs) candidates.insert(e.node);
    };
    offer(r);
    std::size_t operations = operations_of(r);
    const bool update = is_joining_update(r);
    // The largest number first: all users of a node have been decided before it is.
    while (!candidates.empty() && operations < max_fused_operations) {
      std::uint32_t i = *candidates.begin();
      candidates.erase(candidates.begin());
      const node_def& n = graph_.nodes[i];
      if (!fusible(n) || n.device != r.device || !(n.outputs[0].shape == r.outputs[0].shape) ||
          operations + operations_of(n) > max_fused_operations)
        continue;
      // What is refused is so before the variable is touched.
      if (update && may_refuse(n)) continue;
      if (!std::ranges::all_of(users_[i], [&](std::uint32_t u) { return group.contains(u); }))
        continue;
      group.insert(i);
      operations += operations_of(n);
      offer(n);
    }
    return group;
  }

  /// Walks as describe() in expr/lower.hpp does, so that a region which the user wrote elsewhere as
  /// one expression finds its compiled kernel. An expression within it stays a piece of the whole.
  void replace(std::uint32_t root, const std::set<std::uint32_t>& group) {
    using value = program_builder::value;
    program_builder p;
    integers immediates;
    std::vector<edge_def> inputs;
    std::unordered_map<std::uint32_t, value> done;
    auto literal = [&](dtype t, std::int64_t bits) {
      immediates.push_back(bits);
      return p.immediate(t);
    };
    node_def& r = graph_.nodes[root];
    const bool update = is_joining_update(r);
    const value variable = update ? p.input(r.outputs[0].type) : value();
    struct frame {
      std::uint32_t node;
      std::vector<value> args;
    };
    std::vector<frame> stack{{root, {}}};
    while (!stack.empty()) {
      frame& f = stack.back();
      const node_def& n = graph_.nodes[f.node];
      if (f.args.size() < n.inputs.size()) {
        edge_def e = n.inputs[f.args.size()];
        const node_def& from = graph_.nodes[e.node];
        if (update && is_old_value(from, r)) {
          f.args.push_back(variable);
        } else if (auto at = done.find(e.node); at != done.end()) {
          f.args.push_back(at->second);
        } else if (group.contains(e.node)) {
          stack.push_back({e.node, {}});
        } else if (is_literal(from) && !expression_in(n)) {
          const any_array a = decode<op::constant>(from.attributes).value;
          f.args.push_back(visit_dtype(
              a.type(), [&]<class T>() { return literal(a.type(), to_immediate(*a.data<T>())); }));
        } else {
          inputs.push_back(e);
          f.args.push_back(p.input(from.outputs[e.port].type));
        }
        continue;
      }
      if (expression_in(n)) {
        const auto o = decode<op::fused>(n.attributes);
        std::vector<value> values = std::move(f.args);
        for (std::size_t i = 0; i < o.immediates.size(); ++i)
          values.push_back(literal(o.program->immediates[i], o.immediates[i]));
        const std::size_t first = p.operations();
        for (const auto& c : o.program->code) {
          std::array<value, 3> args;
          for (std::size_t a = 0; a < c.count; ++a) args[a] = values[c.args[a]];
          values.push_back(p.apply(*c.op, c.type, std::span(args).first(c.count)));
        }
        p.end_piece(first);
        done.emplace(f.node, values.back());
      } else if (f.node == root && update) {
        const value both[] = {variable, f.args[0]};
        p.apply(*n.op->joins, n.outputs[0].type, both);
      } else {
        done.emplace(f.node, p.apply(*n.op, n.outputs[0].type, f.args));
      }
      stack.pop_back();
    }
    r.inputs = std::move(inputs);
    const op_def& made = joined(r);
    if (!update) {
      r.op = &made;
      r.attributes = encode(op::fused{p.finish(), std::move(immediates)});
      return;
    }
    const resource_ref which = r.op->resource(r.attributes);
    op::fused_update u;
    u.container = which.key.container;
    u.variable_name = which.key.name;
    u.type = which.holds.type;
    u.shape = which.holds.shape;
    u.program = p.finish();
    u.immediates = std::move(immediates);
    r.op = &made;
    r.attributes = encode(u);
  }

  /// Whether a node is the variable's value before the update, which then reads it in place.
  bool is_old_value(const node_def& n, const node_def& update) const {
    if (n.op->role != op_role::variable || !n.controls.empty()) return false;
    const resource_key key = n.op->resource(n.attributes).key;
    return key == update.op->resource(update.attributes).key && updates_.at(key) == 1;
  }

  graph_def& graph_;
  const std::function<bool(placement, const op_def&)>& can_run_;
  std::vector<std::vector<std::uint32_t>> users_;
  std::map<resource_key, int> updates_;
};

}  // namespace

void fuse(graph_def& g, std::span<edge_def> fetches,
          const std::function<bool(placement, const op_def&)>& can_run) {
  if (fuser(g, fetches, can_run).run()) prune(g, fetches);
}

}  // namespace deft::plan
