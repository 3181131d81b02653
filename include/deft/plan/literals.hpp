// SPDX-License-Identifier: Apache-2.0
// deft/plan/literals.hpp: graphs that are the same but for the literals in their expressions.
#pragma once
#include <deft/core/any_array.hpp>
#include <deft/graph/graph_def.hpp>
#include <vector>

namespace deft::plan {

/// The literals of each fused node that has any, in the order of the nodes.
std::vector<integers> literals_of(const graph_def& g);

/// A hash of all that a plan depends on but for those literals and the names that nodes are given.
std::uint64_t hash_without_literals(const flat_graph& flat);

/// Makes inputs of the literals of those fused nodes for which `which` says so, counted as
/// literals_of does: feeds of rank 0, numbered from `first` on.
void feed_literals(flat_graph& flat, const std::vector<bool>& which, std::size_t first);
/// The values for these feeds, in their order.
std::vector<any_array> literal_values(const graph_def& g, const std::vector<bool>& which);

}  // namespace deft::plan
