// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse.ipp: fusion found at run time: regions, and where they stand in the order.
#pragma once
#include <deft/plan/fuser.hpp>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

namespace deft::ext::plan {

fuser::fuser(graph_def& g, std::span<edge_def> fetches, const can_run_test& can_run)
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
    for (const auto& r : resources_of(n))
      if (r.updated) ++updates_[r.ref.key];
}

std::vector<unfused_edge> fuser::run() {
  bool changed = false;
  for (std::uint32_t root = static_cast<std::uint32_t>(graph_.nodes.size()); root-- > 0;) {
    const node_def& r = graph_.nodes[root];
    const bool update = is_joining_update(root);
    if (taken_[root] || (!update && !fusible(graph_, r) && !is_ending_fold(r))) continue;
    if (!has_kernel(root)) continue;
    group made = gather(root);
    const bool literals =
        !update && !is_fold(r) && !expression_in(r) &&
        std::ranges::any_of(r.inputs, [&](edge_def e) { return is_literal(graph_.nodes[e.node]); });
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

group fuser::gather_inputs(std::uint32_t root) {
  const std::size_t said = apart_.size();
  group g = gather_inputs(root, true);
  // Rows of several axes are taken only as a whole.
  if (g.row_axes == 0 || all_are_rows(g)) return g;
  apart_.resize(said);
  return gather_inputs(root, false);
}

group fuser::gather_inputs(std::uint32_t root, bool rows) {
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
    if (const char* reason = fusion_blocker(g, n, rows)) {
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

group fuser::alone(std::uint32_t root) const {
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

bool fuser::find_position(group& g) const {
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

void fuser::drop_rows_without_folds(group& g) {
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

void fuser::finish() {
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

std::vector<unfused_edge> fuse(graph_def& g, std::span<edge_def> fetches,
                               const can_run_test& can_run) {
  return fuser(g, fetches, can_run).run();
}

}  // namespace deft::ext::plan
