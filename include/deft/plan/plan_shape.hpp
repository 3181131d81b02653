// SPDX-License-Identifier: Apache-2.0
// deft/plan/plan_shape.hpp: compares graphs that differ only in the literals of their expressions.
#pragma once
#include <deft/core/any_array.hpp>
#include <deft/graph/graph_def.hpp>
#include <vector>

namespace deft::ext::plan {

/// The literals of each fused node that has some, in the order of the nodes.
std::vector<integers> literals_of(const graph_def& g);

/// Everything that a plan depends on except those literals and the names of nodes. Graphs with
/// equal plan shapes have literals of the same number and dtypes, and can share a plan.
class plan_shape {
 public:
  explicit plan_shape(const flat_graph& flat);

  std::uint64_t hash() const { return hash_; }
  /// Compares the contents, not only the hash.
  friend bool operator==(const plan_shape& a, const plan_shape& b) {
    return a.bytes_ == b.bytes_ && same_attributes(a.contents_, b.contents_);
  }

 private:
  std::string bytes_;  ///< an unambiguous encoding of the nodes
  std::vector<attr_value>
      contents_;  ///< programs and arrays, in the order of the nodes; shared, not copied
  std::vector<placement> requested_;  ///< kept, as the encoding has their numbers
  std::uint64_t hash_ = 0;
};

/// Turns literals into inputs: feeds of rank 0, numbered from `first` on. `which` has one element
/// for each entry of literals_of(flat.graph), and selects the fused nodes.
void feed_literals(flat_graph& flat, const std::vector<bool>& which, std::size_t first);
/// The values of these feeds, in their order.
std::vector<any_array> literal_values(const graph_def& g, const std::vector<bool>& which);

}  // namespace deft::ext::plan
