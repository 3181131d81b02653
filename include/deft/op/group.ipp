// SPDX-License-Identifier: Apache-2.0
// deft/op/group.ipp: the node of group.
#pragma once
#include <deft/op/group.hpp>

namespace deft {

operation group(std::span<const operation> ops, ext::source_location w) {
  std::vector<ext::node_ref> nodes;
  for (const auto& o : ops) nodes.push_back(o.handle());
  return detail::make_group(std::move(nodes), w);
}

namespace detail {

operation make_group(std::vector<node_ref> nodes, source_location w) {
  for (const auto& n : nodes) {
    if (n->owner() != nodes[0]->owner())
      throw error(errc::invalid_argument, "[group] the operations are of different graphs",
                  name_of(*n), w);
    if (!w.known()) w = n->location();
  }
  graph g = nodes.empty() ? current_graph() : graph_for(*nodes[0]);
  control_scope after(std::move(nodes));
  const placement anywhere;
  return operation(ext::add_node(g, op::group(), {.location = w, .device = anywhere}));
}

}  // namespace detail
}  // namespace deft
