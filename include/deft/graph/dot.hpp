// SPDX-License-Identifier: Apache-2.0
// deft/graph/dot.hpp: a graph as input for Graphviz.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <string>

namespace deft {

/// `dot -Tsvg` draws it: a box for each node, with its name, what it computes and the shape of its
/// value; a cluster for each task; a colour for each device; thick edges with bytes where a value
/// is transferred to another device, dashed ones for control dependencies. Nodes that have not been
/// placed are shown on the device that they ask for.
std::string to_dot(const graph_def& g);

}  // namespace deft
