// SPDX-License-Identifier: Apache-2.0
// deft/graph/controls.ipp: control dependencies as scopes.
#pragma once
#include <deft/graph/graph.hpp>

namespace deft::ext {

struct control_list {
  std::vector<node_ref> nodes;
};

namespace {
std::shared_ptr<const control_list> with_controls(std::vector<node_ref> nodes) {
  auto outer = controls_of(current_scope());
  nodes.insert(nodes.begin(), outer.begin(), outer.end());
  return std::make_shared<const control_list>(control_list{std::move(nodes)});
}
}  // namespace

control_scope::control_scope(std::vector<node_ref> nodes)
    : scope(push_controls{with_controls(std::move(nodes))}) {}

std::span<const node_ref> controls_of(const scope_ref& s) {
  if (!s || !s->controls) return {};
  return s->controls->nodes;
}

}  // namespace deft::ext
