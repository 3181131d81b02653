// SPDX-License-Identifier: Apache-2.0
// deft/plan/waits.hpp: the nodes that may wait for events outside the step, and what depends on
// them.
#pragma once
#include <algorithm>
#include <deft/graph/function.hpp>
#include <map>
#include <vector>

namespace deft::ext::plan {

/// For each node, the set of waiting nodes that it depends on, as a number: equal numbers mean
/// equal sets, and 0 is the empty set. A waiting node must not hold up nodes of another set: the
/// event that it waits for may depend on them.
class wait_sets {
 public:
  wait_sets() { sets_.emplace_back(), numbers_.emplace(set(), 0); }
  /// Adds all nodes of a graph, in their order.
  explicit wait_sets(const graph_def& g) : wait_sets() {
    of_.reserve(g.nodes.size());
    for (std::uint32_t i = 0; i < g.nodes.size(); ++i)
      add(g.nodes[i], is(g.nodes[i], op_traits::waits));
  }

  std::uint32_t of(std::uint32_t node) const { return of_[node]; }
  /// Adds the next node. Its inputs and controls must have been added before.
  std::uint32_t add(const node_def& n, bool waits) {
    const auto number = static_cast<std::uint32_t>(of_.size());
    of_.push_back(0);
    return of_.back() = union_of(n, number, waits);
  }

 private:
  using set = std::vector<std::uint32_t>;

  template <class F>
  static void each_before(const node_def& n, F&& f) {
    for (auto e : n.inputs) f(e.node);
    for (auto c : n.controls) f(c);
  }
  std::uint32_t union_of(const node_def& n, std::uint32_t number, bool waits) {
    std::uint32_t found = 0;
    bool several = waits;
    each_before(n, [&](std::uint32_t from) {
      const std::uint32_t w = of_[from];
      several = several || (w && found && w != found);
      if (w) found = w;
    });
    if (!several) return found;
    set all;
    each_before(n, [&](std::uint32_t from) {
      const set& s = sets_[of_[from]];
      all.insert(all.end(), s.begin(), s.end());
    });
    if (waits) all.push_back(number);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    auto [at, fresh] = numbers_.try_emplace(all, static_cast<std::uint32_t>(sets_.size()));
    if (fresh) sets_.push_back(std::move(all));
    return at->second;
  }

  std::vector<std::uint32_t> of_;
  std::vector<set> sets_;
  std::map<set, std::uint32_t> numbers_;
};

}  // namespace deft::ext::plan
