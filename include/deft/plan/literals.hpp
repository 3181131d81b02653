// SPDX-License-Identifier: Apache-2.0
// deft/plan/literals.hpp: graphs that are the same but for the literals in their expressions.
#pragma once
#include <deft/core/any_array.hpp>
#include <deft/graph/graph_def.hpp>
#include <vector>

namespace deft::plan {

/// The literals of each fused node that has any, in the order of the nodes.
std::vector<integers> literals_of(const graph_def& g);

/// All that a plan depends on but for those literals and the names that nodes are given. Graphs
/// with equal outlines have literals of the same number and dtypes, and can share a plan.
class outline {
 public:
  explicit outline(const flat_graph& flat);

  std::uint64_t hash() const { return hash_; }
  /// Compares everything, not the hash.
  friend bool operator==(const outline& a, const outline& b) {
    return a.bytes_ == b.bytes_ && same_attributes(a.contents_, b.contents_);
  }

 private:
  std::string bytes_;  ///< the nodes in a form that can be read in one way only
  std::vector<attr_value>
      contents_;  ///< programs and arrays, in the order of the nodes; shared, not copied
  std::uint64_t hash_ = 0;
};

/// Makes inputs of the literals of those fused nodes for which `which` says so, counted as
/// literals_of does: feeds of rank 0, numbered from `first` on.
void feed_literals(flat_graph& flat, const std::vector<bool>& which, std::size_t first);
/// The values for these feeds, in their order.
std::vector<any_array> literal_values(const graph_def& g, const std::vector<bool>& which);

}  // namespace deft::plan
