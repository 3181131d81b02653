// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse.ipp: fusion found at run time.
#pragma once
#include <algorithm>
#include <array>
#include <deft/op/base/reduction.hpp>
#include <deft/op/constant.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>
#include <deft/plan/extents.hpp>
#include <deft/plan/fuse.hpp>
#include <deft/plan/rewrite.hpp>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

namespace deft::plan {
namespace {

/// The program of a node that an expression became; null for other nodes, and where its literals
/// come with each run.
const program* expression_in(const node_def& n) {
  const program* p = n.op->role == op_role::compute ? program_in(n.attributes) : nullptr;
  return p && !p->is_region() && n.inputs.size() == p->inputs.size() ? p : nullptr;
}
bool fusible(const node_def& n) {
  return n.controls.empty() && (n.op->is(op_traits::elementwise) || expression_in(n));
}
bool is_fold(const node_def& n) { return n.op->folds != fold_kind::none; }
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

/// Nodes that become one.
struct group {
  std::uint32_t root = 0;
  std::set<std::uint32_t> members;
  node_numbers outputs;  ///< what others need, and updates, but for the root
  std::size_t operations = 0;
  dims extents;            ///< of what is computed for each element
  std::uint32_t like = 0;  ///< a node that has them
  int row_axes = 0;        ///< of the folds within
  bool folds_all = false;  ///< the root folds over all axes
  double position = 0;     ///< in the order of nodes

  bool has(std::uint32_t n) const { return members.contains(n); }
};

class fuser {
 public:
  fuser(graph_def& g, std::span<edge_def> fetches,
        const std::function<bool(placement, const op_def&)>& can_run)
      : graph_(g),
        fetches_(fetches),
        can_run_(can_run),
        extents_(g),
        users_(g.nodes.size()),
        fetched_(g.nodes.size()),
        awaited_(g.nodes.size()),
        taken_(g.nodes.size()),
        positions_(g.nodes.size()),
        moved_(g.nodes.size()) {
    std::iota(positions_.begin(), positions_.end(), 0.);
    for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
      for (auto e : g.nodes[i].inputs) users_[e.node].push_back(i);
      for (auto c : g.nodes[i].controls) awaited_[c] = true;
    }
    for (const auto& f : fetches) fetched_[f.node] = true;
    for (const auto& n : g.nodes)
      if (n.op->role == op_role::update || n.op->role == op_role::assign)
        for (const auto& r : n.op->resources(n.attributes)) ++updates_[r.key];
  }

  std::vector<kept_apart> run() {
    bool changed = false;
    for (std::uint32_t root = static_cast<std::uint32_t>(graph_.nodes.size()); root-- > 0;) {
      const node_def& r = graph_.nodes[root];
      const bool update = is_joining_update(r);
      if (taken_[root] || (!update && !fusible(r) && !is_ending_fold(r))) continue;
      if (can_run_ && !can_run_(r.device, joined(r))) continue;
      group made = gather(root);
      const bool literals = !update && !is_fold(r) && !expression_in(r) &&
                            std::ranges::any_of(r.inputs, [&](edge_def e) {
                              return is_literal(graph_.nodes[e.node]);
                            });
      if (made.members.size() == 1 && !literals) continue;
      for (auto n : made.members) {
        taken_[n] = true;
        positions_[n] = made.position;
      }
      replace(made);
      changed = true;
    }
    if (changed) finish();
    return std::move(apart_);
  }

 private:
  /// From this many elements on, reading a value again costs more than a region with two results.
  static constexpr std::int64_t large = 4096;

  // What can be joined.

  const node_def& node(std::uint32_t n) const { return graph_.nodes[n]; }
  const dims& shape_of(edge_def e) const { return node(e.node).outputs[e.port].shape; }

  /// Over all axes, or over the last ones, whose extents are known.
  bool is_ending_fold(const node_def& n) const {
    return is_fold(n) && n.controls.empty() && n.inputs[0].port == 0 &&
           (folds_all(n) || row_axes_of(n) > 0);
  }
  bool folds_all(const node_def& n) const {
    const int rank = shape_of(n.inputs[0]).rank();
    return rank > 0 && decode<op::reduction>(n.attributes).axes.size() == rank;
  }
  /// How many axes a fold of rows has; 0 if it is none.
  int row_axes_of(const node_def& n) const {
    const dims axes = decode<op::reduction>(n.attributes).axes;
    const dims& x = shape_of(n.inputs[0]);
    std::int64_t elements = 1;
    for (int d = x.rank() - axes.size(); d < x.rank(); ++d) {
      if (!axes.contains(d) || x[d] == dyn) return 0;
      elements *= x[d];
    }
    return elements > 1 && axes.size() < x.rank() ? axes.size() : 0;
  }
  /// How many axes a row of `g` has if `shape` has one element for each; 0 if not.
  int axes_of_row(const group& g, const dims& shape) const {
    const int rank = g.extents.rank();
    if (shape.rank() != rank) return 0;
    auto has_rows_of = [&](int axes) {
      for (int d = 0; d < rank; ++d)
        if (shape[d] != (d < rank - axes ? g.extents[d] : 1)) return false;
      return true;
    };
    if (g.row_axes > 0) return has_rows_of(g.row_axes) ? g.row_axes : 0;
    int axes = 1;
    while (axes < rank && !has_rows_of(axes)) ++axes;
    return axes < rank ? axes : 0;
  }

  group gather(std::uint32_t root) {
    const std::size_t said = apart_.size();
    group g = gather(root, true);
    // Rows of several axes are taken only as a whole.
    if (g.row_axes == 0 || all_are_rows(g)) return g;
    apart_.resize(said);
    return gather(root, false);
  }

  group gather(std::uint32_t root, bool rows) {
    const node_def& r = node(root);
    group g;
    g.root = root;
    g.members.insert(root);
    g.operations = operations_of(r);
    g.position = positions_[root];
    g.like = root;
    if (is_fold(r)) {
      g.like = r.inputs[0].node;
      g.folds_all = folds_all(r);
      g.row_axes = g.folds_all ? 0 : row_axes_of(r);
    }
    g.extents = node(g.like).outputs[0].shape;
    if (!g.folds_all && g.row_axes > 0 && !rows) return g;
    std::set<std::uint32_t, std::greater<>> candidates;
    auto offer = [&](const node_def& n) {
      for (auto e : n.inputs)
        if (e.port == 0) candidates.insert(e.node);
    };
    offer(r);
    // The largest number first: all users of a node have been decided before it is.
    while (!candidates.empty()) {
      const std::uint32_t n = *candidates.begin();
      candidates.erase(candidates.begin());
      if (const char* reason = why_not(g, n, rows)) {
        if (*reason) apart_.push_back({node(n).name, r.name, reason});
        continue;
      }
      offer(node(n));
    }
    drop_rows_without_folds(g);
    return g;
  }

  /// Takes `n` in, or says why not; nothing of what cannot be part of any region.
  const char* why_not(group& g, std::uint32_t n, bool rows) {
    const node_def& x = node(n);
    const bool update = is_joining_update(node(g.root)), updates = update && is_joining_update(x);
    const bool fold = is_fold(x);
    if (!fold && !updates && !x.op->is(op_traits::elementwise) && !expression_in(x)) return "";
    if (taken_[n]) return "it is part of another region";
    if (!x.controls.empty()) return "it has control dependencies";
    if (x.device != node(g.root).device) return "it is on another device";
    int axes = 0;
    if (fold) {
      axes = row_axes_of(x);
      if (update || !rows || g.folds_all || axes == 0)
        return "its sum, mean or maximum is known only after all its elements";
      if (!op_keeps_dims(x)) return "it has no axes of extent 1 in the place of those it folds";
      if (!extents_.same(x.inputs[0].node, g.like) || x.inputs[0].port != 0)
        return "it folds another shape";
    } else if (!(x.outputs[0].shape == g.extents)) {
      axes = axes_of_row(g, x.outputs[0].shape);
      if (axes == 0 || !rows || update || g.folds_all) return "it has another shape";
    }
    if (axes > 0 && g.row_axes > 0 && axes != g.row_axes) return "its rows have other axes";
    if (g.operations + operations_of(x) > max_fused_operations)
      return "the region has as many operations as one may have";
    // What is refused is so before the variable is touched.
    if (update && !updates && may_refuse(x))
      return "integers may be refused, and an update must not be";
    const bool shared =
        fetched_[n] || !std::ranges::all_of(users_[n], [&](auto u) { return g.has(u); });
    if (awaited_[n]) return "others wait for it";
    auto take = [&](group& into) {
      into.members.insert(n);
      if (axes > 0) into.row_axes = axes;
      into.operations += operations_of(x);
    };
    if (!shared && !updates) return take(g), nullptr;
    if (update && !updates) return "others need its value";
    if (!updates && !is_large(g.extents)) return "others need its value, which is small";
    if (g.outputs.size() + 2 > program::most_outputs) return "the region has too many results";
    if (axes == 0 && !extents_.same(n, g.like)) return "its extents may be others";
    if (updates && variable_among(updates_of(g), x)) return "the region updates its variable";
    group larger = g;
    take(larger);
    larger.outputs.push_back(n);
    if (!find_position(larger)) return "others need its value before";
    g = std::move(larger);
    return nullptr;
  }
  bool is_large(const dims& d) const { return !d.is_static() || d.elements() >= large; }
  static bool op_keeps_dims(const node_def& n) {
    return decode<op::reduction>(n.attributes).keepdims;
  }

  /// Between what the group takes and whoever needs what it gives, all others staying where they
  /// are: then there is no cycle.
  bool find_position(group& g) const {
    double after = -1, before = static_cast<double>(graph_.nodes.size());
    for (auto m : g.members) {
      for (auto e : node(m).inputs)
        if (!g.has(e.node)) after = std::max(after, positions_[e.node]);
      for (auto c : node(m).controls) after = std::max(after, positions_[c]);
      for (auto u : users_[m])
        if (!g.has(u)) before = std::min(before, positions_[u]);
    }
    const double own = positions_[g.root];
    g.position = own < before ? own : after + (before - after) / 2;
    return after < g.position && g.position < before;
  }

  /// Values of rows that are not made of a fold within are better computed by themselves.
  void drop_rows_without_folds(group& g) {
    std::set<std::uint32_t> folded;
    auto has_rows = [&](std::uint32_t m) {
      return m != g.root && class_of(g, m) == extent_class::row;
    };
    for (auto m : g.members)
      if (is_fold(node(m)) || (has_rows(m) && std::ranges::any_of(node(m).inputs, [&](edge_def e) {
                                 return folded.contains(e.node) && has_rows(e.node);
                               })))
        folded.insert(m);
    std::erase_if(g.members, [&](std::uint32_t m) {
      if (!has_rows(m) || folded.contains(m)) return false;
      apart_.push_back({node(m).name, node(g.root).name, "it has another shape"});
      return true;
    });
    std::erase_if(g.outputs, [&](std::uint32_t m) { return !g.has(m); });
    if (folded.empty()) g.row_axes = 0;
    if (g.outputs.empty())
      g.position = positions_[g.root];
    else if (!find_position(g))
      g = alone(g.root);
  }
  group alone(std::uint32_t root) const {
    group g;
    g.root = root;
    g.members.insert(root);
    g.position = positions_[root];
    return g;
  }

  /// Whether whatever the group takes has one element for each element, row or column, or one in
  /// all, in every run.
  bool all_are_rows(const group& g) const {
    const int rank = g.extents.rank(), outer = rank - g.row_axes;
    if (rank <= 2) return true;  // nothing else can be broadcast to it
    for (auto m : g.members)
      for (auto e : node(m).inputs) {
        if (g.has(e.node)) continue;
        if (e.port == 0 && extents_.same(e.node, g.like)) continue;
        const dims& shape = shape_of(e);
        bool rows = true, columns = true, rows_one = true, columns_one = true;
        for (int d = 0; d < rank; ++d) {
          const int own = d - (rank - shape.rank());
          const std::int64_t extent = own < 0 ? 1 : shape[own];
          const bool same = extent == g.extents[d] && extent != dyn;
          (d < outer ? rows : columns) &= same;
          (d < outer ? rows_one : columns_one) &= extent == 1;
        }
        if (!((rows || rows_one) && (columns || columns_one))) return false;
      }
    return true;
  }

  // What becomes of a group.

  struct value_hash {
    std::size_t operator()(const edge_def& e) const {
      return std::size_t{e.node} * program::most_outputs + e.port;
    }
  };

  /// Walks as put_tokens() in expr/lower.hpp does, so that a region which the user wrote elsewhere
  /// as one expression finds its compiled kernel. An expression within it stays a piece of the
  /// whole.
  void replace(const group& g) {
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
    node_def& r = graph_.nodes[g.root];
    const bool region = is_fold(r) || g.row_axes > 0 || !g.outputs.empty();
    const node_numbers updates = updates_of(g);
    std::vector<value> variables;  // before their updates
    std::vector<std::set<std::uint32_t>> before;
    for (auto u : updates) {
      variables.push_back(p.input(node(u).outputs[0].type));
      before.push_back(needed_by(g, u));
    }
    // Where the node may use a variable that the region updates: not after it has been written.
    auto old_value = [&](const node_def& from, std::uint32_t user) {
      std::size_t u = 0;
      while (u < updates.size() &&
             !(is_old_value(from, node(updates[u])) && before[u].contains(user)))
        ++u;
      return u;
    };
    struct frame {
      std::uint32_t node;
      std::vector<value> args;
    };
    std::vector<frame> stack{{g.root, {}}};
    while (!stack.empty()) {
      frame& f = stack.back();
      const node_def& n = node(f.node);
      if (f.args.size() < n.inputs.size()) {
        edge_def e = n.inputs[f.args.size()];
        const node_def& from = node(e.node);
        if (const auto u = old_value(from, f.node); u < updates.size()) {
          f.args.push_back(variables[u]);
        } else if (auto at = done.find(e.node); at != done.end()) {
          f.args.push_back(at->second);
        } else if (g.has(e.node)) {
          stack.push_back({e.node, {}});
        } else if (is_literal(from) && !expression_in(n) && !is_fold(n)) {
          const any_array a = decode<op::constant>(from.attributes).value;
          f.args.push_back(visit_dtype(
              a.type(), [&]<class T>() { return literal(a.type(), to_immediate(*a.data<T>())); }));
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
      } else if (is_fold(n)) {
        done.emplace(f.node, p.fold(*n.op, n.outputs[0].type, f.args[0], class_of(g, f.node)));
      } else if (const auto u = std::ranges::find(updates, f.node); u != updates.end()) {
        const value both[] = {variables[static_cast<std::size_t>(u - updates.begin())], f.args[0]};
        done.emplace(f.node, p.apply(*n.op->joins, n.outputs[0].type, both));
      } else {
        done.emplace(f.node, p.apply(*n.op, n.outputs[0].type, f.args));
      }
      stack.pop_back();
    }
    if (region) {
      p.row_axes(g.row_axes);
      std::vector<tensor_type> types;
      auto put_out = [&](std::uint32_t m) {
        const node_def& n = node(m);
        const extent_class where = class_of(g, m);
        p.output(done.at(m), where,
                 where != extent_class::element && (!is_fold(n) || op_keeps_dims(n)));
        moved_[m] = edge_def{g.root, static_cast<std::uint32_t>(types.size())};
        types.push_back(n.outputs[0]);
      };
      put_out(g.root);
      for (auto m : g.outputs) put_out(m);
      r.outputs = std::move(types);
    }
    r.inputs = std::move(inputs);
    const op_def& made = joined(r);
    if (updates.empty()) {
      r.op = &made;
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
    u.program = p.finish();
    u.immediates = std::move(immediates);
    r.op = &made;
    r.attributes = encode(u);
  }

  /// The members that update variables: the root, and others.
  node_numbers updates_of(const group& g) const {
    node_numbers all;
    if (!is_joining_update(node(g.root))) return all;
    all.push_back(g.root);
    all.insert(all.end(), g.outputs.begin(), g.outputs.end());
    return all;
  }
  static resource_ref resource_of(const node_def& update) {
    return update.op->resources(update.attributes).front();
  }
  bool variable_among(const node_numbers& updates, const node_def& x) const {
    return std::ranges::any_of(
        updates, [&](auto u) { return resource_of(node(u)).key == resource_of(x).key; });
  }
  /// The member, and those that it needs.
  std::set<std::uint32_t> needed_by(const group& g, std::uint32_t member) const {
    std::set<std::uint32_t> found{member};
    for (node_numbers stack{member}; !stack.empty();) {
      const std::uint32_t n = stack.back();
      stack.pop_back();
      for (auto e : node(n).inputs)
        if (g.has(e.node) && found.insert(e.node).second) stack.push_back(e.node);
    }
    return found;
  }

  extent_class class_of(const group& g, std::uint32_t m) const {
    const node_def& n = node(m);
    if (g.folds_all && m == g.root) return extent_class::whole;
    if (is_fold(n) || !(n.outputs[0].shape == g.extents)) return extent_class::row;
    return extent_class::element;
  }

  /// Whether a node is the variable's value before the update, which then reads it in place.
  bool is_old_value(const node_def& n, const node_def& update) const {
    if (n.op->role != op_role::variable || !n.controls.empty()) return false;
    const resource_key key = resource_of(n).key;
    return key == resource_of(update).key && updates_.at(key) == 1;
  }

  /// Whoever needs a value finds it where it is now; nodes in their new order.
  void finish() {
    auto follow = [&](edge_def& e) {
      if (!moved_[e.node]) return;
      const edge_def to = *moved_[e.node];
      e = {to.node, e.port == run_only ? run_only : to.port};
    };
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i)
      for (auto& e : graph_.nodes[i].inputs)
        if (e.port == 0) follow(e);
    for (auto& f : fetches_) follow(f);
    std::vector<std::uint32_t> order(graph_.nodes.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return positions_[i]; });
    if (!std::ranges::is_sorted(order)) permute(graph_, order, fetches_);
    prune(graph_, fetches_);
  }

  graph_def& graph_;
  std::span<edge_def> fetches_;
  const std::function<bool(placement, const op_def&)>& can_run_;
  const extent_symbols extents_;
  std::vector<node_numbers> users_;
  std::vector<bool> fetched_, awaited_, taken_;  ///< awaited: by control dependencies
  std::vector<double> positions_;
  std::vector<std::optional<edge_def>> moved_;  ///< values that a region gives, by node
  std::map<resource_key, int> updates_;
  std::vector<kept_apart> apart_;
};

}  // namespace

std::vector<kept_apart> fuse(graph_def& g, std::span<edge_def> fetches,
                             const std::function<bool(placement, const op_def&)>& can_run) {
  return fuser(g, fetches, can_run).run();
}

}  // namespace deft::plan
