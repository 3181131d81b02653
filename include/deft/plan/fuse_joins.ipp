// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse_joins.ipp: what joins a region beside the inputs of its root: reductions, updates.
#pragma once
#include <deft/plan/fuser.hpp>
#include <set>

namespace deft::ext::plan {

void fuser::join_folds(group& g) {
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
      } else if (fusible(graph_, user) && has_extents_of(g, u))
        near.push_back(u);
    }
}

const char* fuser::join(group& g, std::uint32_t fold) {
  const std::size_t said = apart_.size();
  const group other = gather_inputs(fold);
  apart_.resize(said);
  if (!extents_.same(g.like, other.like) || !sets_intersect(g, other)) return "";
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
  if (both.row_axes > 0 && !all_are_rows(both)) return "rows of several axes are taken as a whole";
  if (!find_position(both)) return "others need its value before";
  g = std::move(both);
  return nullptr;
}

bool fuser::sets_intersect(const group& a, const group& b) const {
  std::set<std::uint32_t> of_a(a.members);
  for (auto m : a.members)
    for (auto e : node(m).inputs) of_a.insert(e.node);
  auto is_there = [&](std::uint32_t n) { return of_a.contains(n) && has_extents_of(a, n); };
  return std::ranges::any_of(b.members, [&](std::uint32_t m) {
    return is_there(m) ||
           std::ranges::any_of(node(m).inputs, [&](edge_def e) { return is_there(e.node); });
  });
}

bool fuser::join_updates(group& g, std::uint32_t n) const {
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
        if (variable_among(updates_of(all), x) || waits_.of(u) != waits_.of(g.root) ||
            !same_extents(u, g.root))
          return false;
        all.outputs.push_back(u);
      } else if (!fusible(graph_, x) || may_refuse(x)) {
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

}  // namespace deft::ext::plan
