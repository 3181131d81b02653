// SPDX-License-Identifier: Apache-2.0
// tests/plan/planning.hpp: helpers for tests of passes: flat graphs, and invented devices.
#pragma once
#include <deft/device/kind.hpp>
#include <deft/expr.hpp>
#include <deft/plan/order.hpp>
#include <deft/plan/place.hpp>
#include <deft/plan/rewrite.hpp>
#include <initializer_list>

#include "op/modeling.hpp"

namespace testing {

using deft::graph_def;
using deft::ext::edge_def;
using deft::ext::node_def;

inline deft::ext::flat_graph flat(std::initializer_list<deft::any_tensor> fetches,
                                  std::initializer_list<deft::any_tensor> feeds = {}) {
  std::vector<deft::ext::output> f, d;
  for (const auto& t : fetches) f.push_back(t.handle());
  for (const auto& t : feeds) d.push_back(t.handle());
  return deft::ext::flatten(f, d);
}
/// The output that stands for an operation in fetches.
inline deft::ext::flat_graph flat(const deft::operation& o) {
  const deft::ext::output fetch{o.handle(), deft::ext::run_only};
  return deft::ext::flatten({&fetch, 1}, {});
}

inline std::vector<std::string_view> ops_of(const graph_def& g) {
  std::vector<std::string_view> names;
  for (const auto& n : g.nodes) names.push_back(n.op->name);
  return names;
}
using names = std::vector<std::string_view>;

/// The first node of that operation.
inline std::uint32_t find_op_in(const graph_def& g, std::string_view op) {
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i)
    if (g.nodes[i].op->name == op) return i;
  FAIL("no ", std::string(op), " in the graph");
  return 0;
}
inline const node_def& first(const graph_def& g, std::string_view op) {
  return g.nodes[find_op_in(g, op)];
}
inline const node_def& named(const graph_def& g, std::string_view name) {
  for (const auto& n : g.nodes)
    if (n.name == name) return n;
  FAIL("no node \"", std::string(name), "\"");
  return g.nodes.front();
}

inline deft::ext::placement device_at(std::string_view name) {
  return deft::ext::intern(deft::parse_device(name));
}

/// Places all nodes on the processor, except where they request another device.
inline deft::ext::flat_graph on_cpu(deft::ext::flat_graph f) {
  for (auto& n : f.graph.nodes)
    n.device = n.requested ? n.requested : device_at("/job:localhost/replica:0/task:0/cpu:0");
  return f;
}

/// A device that runs the whole catalog except for `except`.
inline deft::device_info made_up(std::string_view name,
                                 std::initializer_list<std::string_view> except = {}) {
  auto kernels = std::make_shared<deft::ext::kernel_set>();
  for (const auto* d : deft::ext::catalog_ops())
    kernels->add(d->name, deft::ext::all_dtypes | deft::ext::dtype_set{deft::dtype::none});
  for (auto e : except) kernels->remove(e);
  deft::device_info d;
  d.name = device_at(name);
  deft::ext::set_kind(d);
  d.kernels = kernels;
  return d;
}

}  // namespace testing
