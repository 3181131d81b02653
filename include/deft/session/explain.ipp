// SPDX-License-Identifier: Apache-2.0
// deft/session/explain.ipp: nodes, transfers, and memory by the lives of values.
#pragma once
#include <algorithm>
#include <deft/graph/node_text.hpp>
#include <deft/session/explain.hpp>
#include <functional>
#include <map>

namespace deft::ext {
namespace {

/// "w1: 401408 bytes from /job:ps/replica:0/task:0/cpu:0" for each input from another device.
std::string transfers_of(const graph_def& g, const node_def& n) {
  std::string s;
  for (auto e : n.inputs) {
    const node_def& from = g.nodes[e.node];
    if (from.device == n.device) continue;
    const std::int64_t bytes = bytes_of_value(from.outputs[e.port]);
    s += str("    ", from.name, ": ", bytes == dyn ? "?" : str(bytes), " bytes from ",
             to_string(*from.device), "\n");
  }
  return s;
}

std::string explain_node(const graph_def& g, const node_def& n) {
  std::string s = str("  ", n.name, " = ", expression_text(g, n));
  if (!n.outputs.empty()) s += str(" -> ", join(n.outputs, ", "));
  s += str(" on ", to_string(*n.device));
  if (n.location.known()) s += str(", ", where_of(n.location));
  return s + "\n" + transfers_of(g, n);
}

/// "matmul 3, add 2", the most frequent first.
std::string count_of_operations(const graph_def& g, const std::vector<std::size_t>& nodes) {
  std::map<std::string_view, std::size_t> counts;
  for (auto i : nodes) ++counts[g.nodes[i].op->name];
  std::vector<std::pair<std::string_view, std::size_t>> all(counts.begin(), counts.end());
  std::ranges::stable_sort(all, std::greater(), &std::pair<std::string_view, std::size_t>::second);
  constexpr std::size_t most = 6;
  const auto named = std::span(all).first(std::min(most, all.size()));
  return join(named, ", ", [](const auto& c) { return str(c.first, " ", c.second); }) +
         (all.size() > most ? ", …" : "");
}

/// The outermost name scope, with its '/'; empty if there is none.
std::string scope_of(const node_def& n) {
  const std::string& name = n.name;
  const auto end = name.find('/');
  return end == name.npos ? std::string() : name.substr(0, end + 1);
}

/// A line for the nodes of a name scope.
std::string explain_scope(const graph_def& g, const std::string& name,
                          const std::vector<std::size_t>& nodes) {
  std::map<std::string, std::size_t> devices;
  std::int64_t bytes = 0;
  std::size_t values = 0;
  for (auto i : nodes) {
    ++devices[to_string(*g.nodes[i].device)];
    for (auto e : g.nodes[i].inputs) {
      const node_def& from = g.nodes[e.node];
      if (from.device == g.nodes[i].device) continue;
      ++values;
      bytes += std::max<std::int64_t>(bytes_of_value(from.outputs[e.port]), 0);
    }
  }
  std::string s = str(
      "  ", name, ": ", nodes.size(), " nodes (", count_of_operations(g, nodes), ") on ",
      join(devices, ", ", [](const auto& d) { return str(d.first, " (", d.second, ")"); }), "\n");
  if (values)
    s += str("    ", values, values == 1 ? " value" : " values", ", ", bytes,
             " bytes or more, from other devices\n");
  return s;
}

/// All nodes; or as few lines as are asked for.
std::string explain_nodes(const graph_def& g, std::size_t most) {
  std::string s;
  if (g.nodes.size() <= most) {
    for (const auto& n : g.nodes) s += explain_node(g, n);
    return s;
  }
  std::map<std::string, std::vector<std::size_t>> scopes;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) scopes[scope_of(g.nodes[i])].push_back(i);
  std::vector<std::size_t> rest;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const std::string name = scope_of(g.nodes[i]);
    const auto& members = scopes[name];
    const bool grouped = !name.empty() && members.size() > 1;
    if (lines >= most) {
      rest.push_back(i);
    } else if (!grouped) {
      ++lines;
      s += explain_node(g, g.nodes[i]);
    } else if (members.front() == i) {
      ++lines;
      s += explain_scope(g, name, members);
    }
  }
  // Those of scopes that have a line are not left out.
  std::erase_if(rest, [&](std::size_t i) {
    const auto& members = scopes[scope_of(g.nodes[i])];
    return !scope_of(g.nodes[i]).empty() && members.size() > 1 &&
           std::ranges::find(rest, members.front()) == rest.end();
  });
  if (!rest.empty())
    s += str("  … and ", rest.size(), " more nodes (", count_of_operations(g, rest),
             "); explain_options.max_nodes says how many lines are shown\n");
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

std::string explain_plan(const plan_description& p, const explain_options& options) {
  const graph_def& g = p.placed;
  std::string s;
  std::uint64_t before = 0;
  for (const auto& pass : p.passes) {
    if (pass.nodes == before) continue;
    s += str(s.empty() ? "" : ", ", pass.nodes,
             before ? str(" after ", pass.pass) : " nodes as written");
    before = pass.nodes;
  }
  s += "\n" + explain_nodes(g, options.max_nodes);
  for (std::size_t i = 0; i < std::min(p.apart.size(), options.max_nodes); ++i)
    s += str("not fused into ", p.apart[i].user, ": ", p.apart[i].node, ", as ", p.apart[i].reason,
             "\n");
  if (p.apart.size() > options.max_nodes)
    s += str(p.apart.size() - options.max_nodes, " more pairs of nodes were not fused\n");
  for (const auto& [device, m] : memory_of(g)) {
    s += str(device, ": ", m.nodes, m.nodes == 1 ? " node" : " nodes", ", at most ", m.peak(),
             " bytes of values at a time");
    if (m.unknown)
      s += str(", and ", m.unknown, m.unknown == 1 ? " value" : " values",
               " with extents known only at run time");
    s += "\n";
  }
  return s;
}

const node_def& node_for(const plan_description& p, const std::string& name) {
  const auto n =
      std::ranges::find_if(p.placed.nodes, [&](const node_def& d) { return d.name == name; });
  return n == p.placed.nodes.end() ? p.placed.nodes.back() : *n;
}

}  // namespace deft::ext
