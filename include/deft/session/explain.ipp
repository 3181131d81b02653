// SPDX-License-Identifier: Apache-2.0
// deft/session/explain.ipp: nodes, transfers, and memory by the lives of values.
#pragma once
#include <algorithm>
#include <deft/graph/program.hpp>
#include <deft/session/explain.hpp>
#include <map>

namespace deft {
namespace {

/// Bytes of a value; dyn where an extent is.
std::int64_t bytes_of_value(const tensor_type& t) {
  return t.shape.is_static() ? t.shape.elements() * static_cast<std::int64_t>(size_of_dtype(t.type))
                             : dyn;
}

std::string explain_node(const graph_def& g, const node_def& n) {
  std::string s = str("  ", n.name, ": ", n.op->name);
  if (const program* p = program_in(n.attributes)) {
    s += str(" ", p->code.size(), " operations");
    const char* separator = ", ";
    for (auto [leaves, what] :
         {std::pair(extent_class::row, "rows"), std::pair(extent_class::column, "columns"),
          std::pair(extent_class::whole, "all elements")})
      if (const auto folds = std::ranges::count(p->code, leaves, &instruction::leaves)) {
        s += str(separator, folds, " of them ", folds == 1 ? "a fold of " : "folds of ", what);
        separator = " and ";
      }
    constexpr std::size_t most = 12;
    const auto named = std::span(p->code).first(std::min(most, p->code.size()));
    s += str(": ", join(named, ", ", [](const instruction& c) { return c.op->name; }),
             p->code.size() > most ? ", …" : "");
  }
  if (!n.outputs.empty())
    s += str(" -> ", join(n.outputs, ", ", [](const tensor_type& t) { return to_string(t); }));
  s += str(" on ", to_string(*n.device), "\n");
  for (auto e : n.inputs) {
    const node_def& from = g.nodes[e.node];
    if (from.device == n.device) continue;
    const std::int64_t bytes = bytes_of_value(from.outputs[e.port]);
    s += str("    ", from.name, " crosses from ", to_string(*from.device), ": ",
             bytes == dyn ? "?" : str(bytes), " bytes\n");
  }
  return s;
}

/// What lives on a device: by node, how the sum changes when it begins.
struct device_memory {
  std::size_t nodes = 0, unknown = 0;
  std::vector<std::int64_t> change;

  std::int64_t peak() const {
    std::int64_t now = 0, most = 0;
    for (auto c : change) most = std::max(most, now += c);
    return most;
  }
};

/// A value lives where it is made until its last use, and from its first use to its last on each
/// other device; one that nobody uses is fetched, and lives until the end.
std::map<std::string, device_memory> memory_of(const graph_def& g) {
  std::map<std::string, device_memory> all;
  auto at = [&](placement d) -> device_memory& {
    device_memory& m = all[to_string(*d)];
    m.change.resize(g.nodes.size() + 1);
    return m;
  };
  struct span {
    std::size_t first, last;
  };
  // By value and device. Nodes come before those that use them.
  std::map<std::pair<std::size_t, std::uint32_t>, std::map<placement, span>> lives;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const node_def& n = g.nodes[i];
    ++at(n.device).nodes;
    for (std::uint32_t o = 0; o < n.outputs.size(); ++o) lives[{i, o}][n.device] = {i, i};
    for (auto e : n.inputs) {
      auto& by_device = lives[{e.node, e.port}];
      by_device.try_emplace(n.device, span{i, i}).first->second.last = i;
      by_device[g.nodes[e.node].device].last = i;
    }
  }
  for (const auto& [value, by_device] : lives) {
    const bool used = by_device.size() > 1 || by_device.begin()->second.last > value.first;
    const std::int64_t bytes = bytes_of_value(g.nodes[value.first].outputs[value.second]);
    for (const auto& [device, s] : by_device) {
      device_memory& m = at(device);
      if (bytes == dyn) {
        ++m.unknown;
        continue;
      }
      m.change[s.first] += bytes;
      m.change[used ? s.last + 1 : g.nodes.size()] -= bytes;
    }
  }
  return all;
}

}  // namespace

std::string explain_plan(const plan_description& p) {
  const graph_def& g = p.placed;
  std::string s =
      str("nodes: ",
          join(p.passes, ", ", [](const plan::pass_size& x) { return str(x.nodes, " ", x.pass); }),
          "\n");
  for (const auto& n : g.nodes) s += explain_node(g, n);
  for (const auto& a : p.apart)
    s += str("not fused into ", a.user, ": ", a.node, ", as ", a.reason, "\n");
  for (const auto& [device, m] : memory_of(g)) {
    s += str(device, ": ", m.nodes, m.nodes == 1 ? " node" : " nodes", ", at most ", m.peak(),
             " bytes of values at a time");
    if (m.unknown)
      s += str(", and ", m.unknown, m.unknown == 1 ? " value" : " values",
               " whose extents run time tells");
    s += "\n";
  }
  return s;
}

}  // namespace deft
