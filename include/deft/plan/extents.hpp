// SPDX-License-Identifier: Apache-2.0
// deft/plan/extents.hpp: which extents that are known only at run time are the same.
#pragma once
#include <array>
#include <deft/graph/graph_def.hpp>
#include <utility>
#include <vector>

namespace deft::plan {

/// One operation, or an expression of several, on values that are broadcast together.
inline bool is_elementwise(const node_def& n) {
  const program* p = n.op->role == op_role::compute ? program_in(n.attributes) : nullptr;
  return n.op->is(op_traits::elementwise) || (p && !p->is_region());
}

/// Of each node's first output, what stands for its `dyn` extents: equal symbols, equal extents.
/// Elementwise operations, reductions, aliases and what keeps axes pass them on; others make new
/// ones.
class extent_symbols {
 public:
  explicit extent_symbols(const graph_def& g);

  /// The first node, and which axis of its first output, that has the extent of axis `d` of node
  /// `n`'s first output, which is `dyn`.
  std::pair<std::uint32_t, int> origin(std::uint32_t n, int d) const {
    const std::uint64_t symbol = of_[n][static_cast<std::size_t>(d)] - 1;
    return {static_cast<std::uint32_t>(symbol / max_rank), static_cast<int>(symbol % max_rank)};
  }
  /// Whether two nodes' first outputs have the same extents in every run.
  bool same(std::uint32_t a, std::uint32_t b) const;

 private:
  using symbols = std::array<std::uint64_t, max_rank>;

  const graph_def& graph_;
  std::vector<symbols> of_;
};

}  // namespace deft::plan
