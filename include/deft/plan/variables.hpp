// SPDX-License-Identifier: Apache-2.0
// deft/plan/variables.hpp: which nodes touch which variable, and the order of reads and updates.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <optional>
#include <string>
#include <utility>

namespace deft::plan {

/// Container and name.
using variable_key = std::pair<std::string, std::string>;

/// The variable that a node reads or updates, if it does.
std::optional<variable_key> variable_of(const node_def& n);
/// It is an assign, assign_add or assign_sub.
bool is_update(const node_def& n);

/// Makes every plain read come before the updates of its variable in this run, by control
/// dependencies, and puts the nodes into an order that keeps them.
/// Throws invalid_argument if two updates of one variable are not ordered.
void order_variables(graph_def& g, std::span<edge_def> fetches);

/// Drops what neither `fetches` nor nodes with effects among `roots` need, and renumbers.
void prune(graph_def& g, std::span<edge_def> fetches);

/// Nodes in an order in which each comes after its inputs and controls, as close to the present one
/// as that allows; `fetches` are renumbered. Throws internal if there is a cycle.
void sort(graph_def& g, std::span<edge_def> fetches);

}  // namespace deft::plan
