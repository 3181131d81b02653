// SPDX-License-Identifier: Apache-2.0
// deft/plan/extents.hpp: which extents that are known only at run time are the same.
#pragma once
#include <array>
#include <deft/graph/graph_def.hpp>
#include <vector>

namespace deft::plan {

/// Of each node's first output, what stands for its `dyn` extents: equal symbols, equal extents.
/// Elementwise operations, reductions and aliases pass them on; others make new ones.
class extent_symbols {
 public:
  explicit extent_symbols(const graph_def& g);

  /// Whether two nodes' first outputs have the same extents in every run.
  bool same(std::uint32_t a, std::uint32_t b) const;

 private:
  using symbols = std::array<std::uint64_t, max_rank>;

  const graph_def& graph_;
  std::vector<symbols> of_;
};

}  // namespace deft::plan
