// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse.ipp: fusion found at run time.
#pragma once
#include <algorithm>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/fused_update.hpp>
#include <deft/plan/extents.hpp>
#include <deft/plan/fuse.hpp>
#include <deft/plan/region.hpp>
#include <deft/plan/waits.hpp>
#include <numeric>
#include <utility>

namespace deft::plan {
namespace {

bool fusible(const node_def& n) {
  return n.controls.empty() && (n.op->is(op_traits::elementwise) || expression_in(n));
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

class fuser {
 public:
  fuser(graph_def& g, std::span<edge_def> fetches, const can_run_test& can_run)
      : graph_(g),
        fetches_(fetches),
        can_run_(can_run),
        extents_(g),
        waits_(g),
        users_(g.nodes.size()),
        awaiting_(g.nodes.size()),
        fetched_(g.nodes.size()),
        taken_(g.nodes.size()),
        positions_(g.nodes.size()),
        moved_(g.nodes.size()) {
    std::iota(positions_.begin(), positions_.end(), 0.);
    for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
      for (auto e : g.nodes[i].inputs) users_[e.node].push_back(i);
      for (auto c : g.nodes[i].controls) awaiting_[c].push_back(i);
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
      const bool update = is_joining_update(root);
      if (taken_[root] || (!update && !fusible(r) && !is_ending_fold(r))) continue;
      if (!has_kernel(root)) continue;
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
      write_region(graph_, made, updates_, moved_);
      changed = true;
    }
    if (changed) finish();
    return std::move(apart_);
  }

 private:
  /// From this many elements on, reading a value again costs more than a region with two results.
  static constexpr std::int64_t large = 4096;

  // What can be joined.

  bool has_kernel(std::uint32_t root) const { return has_kernel(root, node(root).outputs[0].type); }
  bool has_kernel(std::uint32_t root, dtype t) const {
    const op_def& made =
        is_joining_update(root) ? record_of<op::fused_update> : record_of<op::fused>;
    return !can_run_ || can_run_(node(root).device, made, t);
  }
  /// Whether what `root` becomes, which its device can run, can compute `n`.
  bool has_kernel(std::uint32_t root, const node_def& n) const {
    const dtype t = n.outputs[0].type;
    return t == node(root).outputs[0].type || has_kernel(root, t);
  }

  /// An update that a program can express: it adds or subtracts, or assigns an elementwise value
  /// that is computed from the variable, which therefore has one to update in place.
  bool is_joining_update(std::uint32_t u) const {
    const node_def& n = node(u);
    if (n.op->role == op_role::update) return n.op->joins && n.outputs[0].shape.is_static();
    if (n.op->role != op_role::assign || !n.outputs[0].shape.is_static()) return false;
    const auto [value, port] = n.inputs[0];
    const node_def& x = node(value);
    return port == 0 && fusible(x) && !may_refuse(x) && x.device == n.device &&
           x.outputs[0] == n.outputs[0] && users_[value].size() == 1 && !fetched_[value] &&
           !is_awaited(value) && needs_old_value(value, n);
  }
  bool needs_old_value(std::uint32_t value, const node_def& update) const {
    constexpr std::size_t farthest = 64;
    node_numbers found{value};
    for (std::size_t i = 0; i < found.size() && found.size() < farthest; ++i)
      for (auto e : node(found[i]).inputs) {
        if (is_old_value(node(e.node), update, updates_)) return true;
        if (std::ranges::find(found, e.node) == found.end()) found.push_back(e.node);
      }
    return false;
  }
  /// What `n` cannot do without in a region: the value of an assignment.
  std::optional<std::uint32_t> value_of(std::uint32_t n) const {
    if (node(n).op->role != op_role::assign) return {};
    return node(n).inputs[0].node;
  }

  bool is_awaited(std::uint32_t n) const { return !awaiting_[n].empty(); }
  const node_def& node(std::uint32_t n) const { return graph_.nodes[n]; }
  const dims& shape_of(edge_def e) const { return node(e.node).outputs[e.port].shape; }

  bool is_ending_fold(const node_def& n) const {
    return is_fold(n) && n.controls.empty() && n.inputs[0].port == 0 &&
           shape_of_fold(graph_, n).has_value();
  }
  /// How many axes a fold of rows has; 0 if it is none.
  int row_axes_of(const node_def& n) const {
    const auto shape = shape_of_fold(graph_, n);
    return shape && shape->leaves == extent_class::row ? shape->row_axes : 0;
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
    group g = gather_inputs(root);
    if (is_large(g.extents) && !g.updates) join_folds(g);
    return g;
  }

  /// What the root needs.
  group gather_inputs(std::uint32_t root) {
    const std::size_t said = apart_.size();
    group g = gather_inputs(root, true);
    // Rows of several axes are taken only as a whole.
    if (g.row_axes == 0 || all_are_rows(g)) return g;
    apart_.resize(said);
    return gather_inputs(root, false);
  }

  group gather_inputs(std::uint32_t root, bool rows) {
    const node_def& r = node(root);
    group g = alone(root);
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
      if (g.has(n)) {  // an assignment's value
        offer(node(n));
        continue;
      }
      if (const char* reason = why_not(g, n, rows)) {
        if (*reason) apart_.push_back({node(n).name, r.name, reason});
        continue;
      }
      offer(node(n));
      if (g.updates)  // others may have joined with it
        for (auto u : g.outputs) offer(node(u));
    }
    drop_rows_without_folds(g);
    return g;
  }
  /// The root by itself.
  group alone(std::uint32_t root) const {
    group g;
    g.root = g.like = root;
    g.updates = is_joining_update(root);
    put(g, root);
    g.position = positions_[root];
    if (is_fold(node(root))) {
      g.like = node(root).inputs[0].node;
      const fold_shape shape = *shape_of_fold(graph_, node(root));
      g.folds_all = shape.leaves == extent_class::whole;
      g.row_axes = shape.row_axes;
    }
    g.extents = node(g.like).outputs[0].shape;
    return g;
  }

  void put(group& g, std::uint32_t n) const {
    g.members.insert(n);
    g.operations += operations_with_value(n);
    if (const auto value = value_of(n)) g.members.insert(*value);
  }
  std::size_t operations_with_value(std::uint32_t n) const {
    const auto value = value_of(n);
    return operations_of(node(value ? *value : n));
  }

  /// Folds of what the region reads or computes: they need no pass of their own.
  void join_folds(group& g) {
    constexpr std::size_t farthest = 64;
    node_numbers near(g.members.begin(), g.members.end());
    for (auto m : g.members)
      for (auto e : node(m).inputs)
        if (!g.has(e.node) && e.port == 0) near.push_back(e.node);
    std::erase_if(near, [&](std::uint32_t n) { return !has_extents_of(g, n); });
    std::set<std::uint32_t> seen(near.begin(), near.end());
    for (std::size_t i = 0; i < near.size() && seen.size() < farthest; ++i)
      for (auto u : users_[near[i]]) {
        if (g.has(u) || taken_[u] || !seen.insert(u).second) continue;
        const node_def& user = node(u);
        if (user.device != node(g.root).device || user.outputs.empty() || !has_kernel(g.root, user))
          continue;
        if (is_ending_fold(user) && user.inputs[0] == edge_def{near[i], 0} && !is_awaited(u)) {
          if (const char* reason = join(g, u); reason && *reason)
            apart_.push_back({user.name, node(g.root).name, reason});
        } else if (fusible(user) && has_extents_of(g, u))
          near.push_back(u);
      }
  }
  /// Takes the region of a fold in, or says why not; nothing where both have nothing in common.
  const char* join(group& g, std::uint32_t fold) {
    const std::size_t said = apart_.size();
    const group other = gather_inputs(fold);
    apart_.resize(said);
    if (!extents_.same(g.like, other.like) || !meet(g, other)) return "";
    group both = g;
    both.members.insert(other.members.begin(), other.members.end());
    both.folds_all = g.folds_all || other.folds_all;
    both.row_axes = std::max(g.row_axes, other.row_axes);
    if (g.row_axes > 0 && other.row_axes > 0 && g.row_axes != other.row_axes)
      return "its rows have other axes";
    if (both.folds_all && both.row_axes > 0) return "one of them folds all axes, and one does not";
    if (waits_.of(g.root) != waits_.of(fold))
      return "they wait for different events outside the step";
    both.operations = 0;
    both.outputs.clear();
    for (auto m : both.members) {
      if (is_fold(node(m)) && !can_be_used(both, m) &&
          std::ranges::any_of(users_[m], [&](auto u) { return both.has(u); }))
        return "its value is needed there before all elements are known";
      both.operations += operations_of(node(m));
      if (m != g.root && is_shared(both, m)) both.outputs.push_back(m);
    }
    if (both.operations > max_fused_operations)
      return "the region has as many operations as one may have";
    if (both.outputs.size() + 1 > program::most_outputs) return "the region has too many results";
    if (both.row_axes > 0 && !all_are_rows(both))
      return "rows of several axes are taken as a whole";
    if (!find_position(both)) return "others need its value before";
    g = std::move(both);
    return nullptr;
  }
  /// Whether a fold's value is there for the elements of its region.
  bool can_be_used(const group& g, std::uint32_t fold) const {
    return class_of(graph_, g, fold) == extent_class::row && keeps_dims(node(fold));
  }
  /// Whether one needs, for each element, what the other needs or gives.
  bool meet(const group& a, const group& b) const {
    std::set<std::uint32_t> of_a(a.members);
    for (auto m : a.members)
      for (auto e : node(m).inputs) of_a.insert(e.node);
    auto is_there = [&](std::uint32_t n) { return of_a.contains(n) && has_extents_of(a, n); };
    return std::ranges::any_of(b.members, [&](std::uint32_t m) {
      return is_there(m) ||
             std::ranges::any_of(node(m).inputs, [&](edge_def e) { return is_there(e.node); });
    });
  }
  bool has_extents_of(const group& g, std::uint32_t n) const {
    return !node(n).outputs.empty() && extents_.same(n, g.like);
  }
  /// Whether others than the group's members need it.
  bool is_shared(const group& g, std::uint32_t n) const {
    return fetched_[n] || !std::ranges::all_of(users_[n], [&](auto u) { return g.has(u); });
  }

  /// Takes `n` in, or says why not; nothing of what cannot be part of any region.
  const char* why_not(group& g, std::uint32_t n, bool rows) {
    const node_def& x = node(n);
    const bool update = g.updates, updates = update && is_joining_update(n);
    const bool fold = is_fold(x);
    if (!fold && !updates && !x.op->is(op_traits::elementwise) && !expression_in(x)) return "";
    if (taken_[n]) return "it is part of another region";
    if (!x.controls.empty()) return "it has control dependencies";
    if (x.device != node(g.root).device) return "it is on another device";
    if (!has_kernel(g.root, x)) return "the device has no fused kernel for its dtype";
    int axes = 0;
    if (fold) {
      axes = row_axes_of(x);
      if (update || !rows || g.folds_all || axes == 0)
        return "its sum, mean or maximum is known only after all its elements";
      if (!keeps_dims(x)) return "it has no axes of extent 1 in the place of those it folds";
      if (!extents_.same(x.inputs[0].node, g.like) || x.inputs[0].port != 0)
        return "it folds another shape";
    } else if (!(x.outputs[0].shape == g.extents)) {
      axes = axes_of_row(g, x.outputs[0].shape);
      if (axes == 0 || !rows || update || g.folds_all) return "it has another shape";
    }
    if (axes > 0 && g.row_axes > 0 && axes != g.row_axes) return "its rows have other axes";
    if (g.operations + operations_with_value(n) > max_fused_operations)
      return "the region has as many operations as one may have";
    // What is refused is so before the variable is touched.
    if (update && !updates && may_refuse(x))
      return "integer division can fail, and an update must not fail half way";
    const bool shared = is_shared(g, n);
    if (is_awaited(n)) return "others wait for it";
    auto take = [&](group& into) {
      put(into, n);
      if (axes > 0) into.row_axes = axes;
    };
    if (!shared && !updates) return take(g), nullptr;
    if (update && !updates)
      return join_updates(g, n) ? nullptr : "others than updates of its shape need its value";
    if (!updates && !is_large(g.extents)) return "others need its value, which is small";
    if (g.outputs.size() + 2 > program::most_outputs) return "the region has too many results";
    if (axes == 0 && !extents_.same(n, g.like)) return "its extents may differ";
    if (updates && variable_among(updates_of(g), x)) return "the region updates its variable";
    group larger = g;
    take(larger);
    larger.outputs.push_back(n);
    if (waits_.of(n) != waits_.of(g.root))
      return "its consumer waits for other events outside the step";
    if (!find_position(larger)) return "others need its value before";
    g = std::move(larger);
    return nullptr;
  }
  /// Takes in `n`, which several updates need, with all of them and what they compute of it.
  bool join_updates(group& g, std::uint32_t n) const {
    group all = g;
    put(all, n);
    for (node_numbers shared{n}; !shared.empty();) {
      const std::uint32_t used = shared.back();
      shared.pop_back();
      if (fetched_[used]) return false;
      for (auto u : users_[used]) {
        if (all.has(u)) continue;
        const node_def& x = node(u);
        const bool updates = is_joining_update(u);
        if (taken_[u] || (is_awaited(u) && !updates) || !x.controls.empty() ||
            x.device != node(g.root).device || x.outputs.empty() ||
            !(x.outputs[0].shape == g.extents) || !has_kernel(g.root, x) ||
            all.members.size() > 2 * max_fused_operations)
          return false;
        if (updates) {
          if (variable_among(updates_of(all), x) || waits_.of(u) != waits_.of(g.root)) return false;
          all.outputs.push_back(u);
        } else if (!fusible(x) || may_refuse(x)) {
          return false;
        } else {
          shared.push_back(u);
        }
        put(all, u);
      }
    }
    all.operations = 0;
    for (auto m : all.members)
      if (!value_of(m)) all.operations += operations_of(node(m));
    if (all.operations > max_fused_operations || all.outputs.size() + 1 > program::most_outputs ||
        !find_position(all))
      return false;
    g = std::move(all);
    return true;
  }
  bool is_large(const dims& d) const { return !d.is_static() || d.elements() >= large; }
  bool variable_among(const node_numbers& updates, const node_def& x) const {
    return std::ranges::any_of(
        updates, [&](auto u) { return resource_of(node(u)).key == resource_of(x).key; });
  }

  /// Finds a position between the inputs of the group and its consumers while all other nodes keep
  /// theirs: then there is no cycle.
  bool find_position(group& g) const {
    double after = -1, before = static_cast<double>(graph_.nodes.size());
    for (auto m : g.members) {
      for (auto e : node(m).inputs)
        if (!g.has(e.node)) after = std::max(after, positions_[e.node]);
      for (auto c : node(m).controls) after = std::max(after, positions_[c]);
      for (auto u : users_[m])
        if (!g.has(u)) before = std::min(before, positions_[u]);
      for (auto u : awaiting_[m]) {
        if (g.has(u)) return false;
        before = std::min(before, positions_[u]);
      }
    }
    const double own = positions_[g.root];
    g.position = own < before ? own : after + (before - after) / 2;
    return after < g.position && g.position < before;
  }

  /// Values of rows that are not made of a fold within are better computed by themselves.
  void drop_rows_without_folds(group& g) {
    std::set<std::uint32_t> folded;
    auto has_rows = [&](std::uint32_t m) {
      return m != g.root && class_of(graph_, g, m) == extent_class::row;
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
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i)
      if (auto& controls = graph_.nodes[i].controls;
          std::ranges::any_of(controls, [&](auto c) { return moved_[c].has_value(); })) {
        const node_numbers before = std::exchange(controls, {});
        for (auto c : before) {
          const std::uint32_t now = moved_[c] ? moved_[c]->node : c;
          if (!std::ranges::count(controls, now)) controls.push_back(now);
        }
      }
    for (auto& f : fetches_) follow(f);
    std::vector<std::uint32_t> order(graph_.nodes.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return positions_[i]; });
    if (!std::ranges::is_sorted(order)) permute(graph_, order, fetches_);
    prune(graph_, fetches_);
  }

  graph_def& graph_;
  std::span<edge_def> fetches_;
  const can_run_test& can_run_;
  const extent_symbols extents_;
  const wait_sets waits_;
  std::vector<node_numbers> users_, awaiting_;  ///< the latter by control dependencies
  std::vector<bool> fetched_, taken_;
  std::vector<double> positions_;
  moved_values moved_;
  update_counts updates_;
  std::vector<kept_apart> apart_;
};

}  // namespace

std::vector<kept_apart> fuse(graph_def& g, std::span<edge_def> fetches,
                             const can_run_test& can_run) {
  return fuser(g, fetches, can_run).run();
}

}  // namespace deft::plan
