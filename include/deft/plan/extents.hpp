// SPDX-License-Identifier: Apache-2.0
// deft/plan/extents.hpp: finds extents known only at run time that are always equal.
#pragma once
#include <array>
#include <deft/graph/graph_def.hpp>
#include <utility>
#include <vector>

namespace deft::ext::plan {

/// Whether `n` is an elementwise operation, or an expression of several.
inline bool is_elementwise(const node_def& n) {
  const program* p = n.op->role == op_role::compute ? program_in(n.attributes) : nullptr;
  return n.op->is(op_traits::elementwise) || (p && !p->is_region());
}

/// Symbols for the `dyn` extents of each node's first output: equal symbols mean equal extents.
/// Elementwise operations, reductions, aliases and operations that keep axes pass the symbols of
/// their inputs on; other operations make new ones.
class extent_symbols {
 public:
  explicit extent_symbols(const graph_def& g);

  /// The first node, and the axis of its first output, whose extent equals that of axis `d` of node
  /// `n`'s first output. The extent must be `dyn`.
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

}  // namespace deft::ext::plan
