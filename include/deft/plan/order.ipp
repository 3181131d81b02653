// SPDX-License-Identifier: Apache-2.0
// deft/plan/order.ipp: few waits between tasks, and reads before updates.
#pragma once
#include <algorithm>
#include <compare>
#include <cstdint>
#include <deft/op/random_normal.hpp>
#include <deft/op/random_uniform.hpp>
#include <deft/op/truncated_normal.hpp>
#include <deft/plan/cut.hpp>
#include <deft/plan/order.hpp>
#include <deft/plan/rewrite.hpp>
#include <map>
#include <numeric>
#include <vector>

namespace deft::ext::plan {
namespace {

/// Whether `to` is needed by `from`, directly or not. Nodes are in order.
bool reaches(const graph_def& g, std::uint32_t from, std::uint32_t to) {
  node_numbers stack{from};
  std::vector<bool> seen(g.nodes.size());
  while (!stack.empty()) {
    auto n = stack.back();
    stack.pop_back();
    if (n == to) return true;
    auto visit = [&](std::uint32_t i) {
      if (i >= to && !seen[i]) seen[i] = true, stack.push_back(i);
    };
    for (auto e : g.nodes[n].inputs) visit(e.node);
    for (auto c : g.nodes[n].controls) visit(c);
  }
  return false;
}

/// INT64_MAX - 1 if it is known only when a step runs.
std::int64_t sent_bytes(const node_def& n) {
  std::int64_t bytes = 0;
  for (const auto& t : n.outputs) {
    if (!t.shape.is_static()) return INT64_MAX - 1;
    bytes += t.shape.elements() * static_cast<std::int64_t>(size_of_dtype(t.type));
  }
  return bytes;
}

template <class... Op>
bool is_drawing_one_of(const node_def& n) {
  return ((n.op->name == Op::name && decode<Op>(n.attributes).every_step) || ...);
}

struct touched {
  node_numbers reads, updates;
};

/// Whoever uses the value that `read` yields, as it is or as another node, before `update`.
void prefer_users(const graph_def& g, const std::vector<node_numbers>& users, std::uint32_t read,
                  std::uint32_t update, std::vector<preference>& into) {
  node_numbers stack{read};
  while (!stack.empty()) {
    const auto n = stack.back();
    stack.pop_back();
    for (auto u : users[n]) {
      if (u == update) continue;
      into.push_back({u, update});
      if (g.nodes[u].op->role == op_role::alias) stack.push_back(u);
    }
  }
}

}  // namespace

bool draws(const node_def& n) {
  return any_node(n,
                  is_drawing_one_of<op::random_uniform, op::random_normal, op::truncated_normal>);
}

void order_transfers(graph_def& g, std::span<edge_def> fetches) {
  std::map<placement, placement> task_of_device;
  std::vector<placement> tasks;
  for (const auto& n : g.nodes) {
    placement& task = task_of_device[n.device];
    if (!task) task = task_of(*n.device);
    tasks.push_back(task);
  }
  struct rank {
    std::uint32_t transfers = 0;     ///< between tasks
    std::uint32_t copies = 0;        ///< between devices since the last of them
    std::int64_t bytes = INT64_MAX;  ///< of a value that is sent and needs no other
    auto operator<=>(const rank&) const = default;
  };
  std::vector<rank> ranks(g.nodes.size());
  constexpr std::int64_t before_all = -1;
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
    auto after = [&](std::uint32_t n) {
      const node_def& from = g.nodes[n];
      const bool sent = tasks[n] != tasks[i], copied = from.device != g.nodes[i].device;
      const rank before = sent ? rank{ranks[n].transfers + 1, 0}
                               : rank{ranks[n].transfers, ranks[n].copies + copied};
      ranks[i] = std::max(ranks[i], before);
      if (sent && from.inputs.empty() && from.controls.empty() && ranks[n].bytes != before_all)
        ranks[n].bytes = sent_bytes(from);
    };
    if (g.nodes[i].op->is(op_traits::begins)) ranks[i].bytes = before_all;
    for (auto e : g.nodes[i].inputs) after(e.node);
    for (auto c : g.nodes[i].controls) after(c);
  }
  node_numbers order(g.nodes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t n) { return ranks[n]; });
  if (!std::ranges::is_sorted(order)) permute(g, order, fetches);
}

void order_variables(graph_def& g, std::span<edge_def> fetches) {
  std::map<resource_key, touched> variables;
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
    const node_def& n = g.nodes[i];
    if (is_update(n) || n.op->role == op_role::variable || n.op->role == op_role::call)
      for (auto& r : resources_of(n)) {
        touched& t = variables[std::move(r.ref.key)];
        (r.updated ? t.updates : t.reads).push_back(i);
      }
  }
  for (const auto& [name, t] : variables)
    for (std::size_t u = 1; u < t.updates.size(); ++u)
      if (!reaches(g, t.updates[u], t.updates[u - 1]))
        throw error(
            errc::invalid_argument,
            str("[", g.nodes[t.updates[u]].op->name, "] variable \"", name.name,
                "\" is updated twice in one run, here and by \"", g.nodes[t.updates[u - 1]].name,
                "\" ", where_of(g.nodes[t.updates[u - 1]].location),
                ", in no order: use control_dependencies"),
            g.nodes[t.updates[u]].name, g.nodes[t.updates[u]].location);
  std::vector<node_numbers> users(g.nodes.size());
  std::vector<preference> preferences;
  bool added = false;
  for (const auto& [name, t] : variables) {
    if (t.updates.empty() || t.reads.empty()) continue;
    if (!added)
      for (std::uint32_t i = 0; i < g.nodes.size(); ++i)
        for (auto e : g.nodes[i].inputs) users[e.node].push_back(i);
    added = true;
    for (auto r : t.reads)
      for (auto u : t.updates) {
        // A call that depends on the update reads what that has left.
        if (r == u || (g.nodes[r].op->role == op_role::call && reaches(g, r, u))) continue;
        auto& controls = g.nodes[u].controls;
        if (!std::ranges::count(controls, r)) controls.push_back(r);
        prefer_users(g, users, r, u, preferences);
      }
  }
  if (added) sort(g, fetches, preferences);
}

}  // namespace deft::ext::plan
