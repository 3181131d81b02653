// SPDX-License-Identifier: Apache-2.0
// deft/plan/checks.ipp: where checks of extents stand.
#pragma once
#include <algorithm>
#include <deft/plan/checks.hpp>
#include <deft/plan/extents.hpp>
#include <deft/plan/rewrite.hpp>
#include <map>
#include <optional>
#include <vector>

namespace deft::ext::plan {
namespace {

bool is_check(const node_def& n) { return n.op->is(op_traits::checks); }

/// The node that has the extents which `check` is about before its input has them; nullopt if there
/// is none, or it is a variable, which regions update in place.
std::optional<std::uint32_t> earlier(const graph_def& g, const extent_symbols& extents,
                                     const node_def& check) {
  const auto [of, port] = check.inputs[0];
  if (port != 0 || !check.controls.empty() || !is_elementwise(g.nodes[of])) return {};
  const dims &before = g.nodes[of].outputs[0].shape, &after = check.outputs[0].shape;
  std::optional<std::uint32_t> found;
  for (int d = 0; d < before.rank(); ++d) {
    if (before[d] == after[d]) continue;
    const auto [node, axis] = extents.origin(of, d);
    if (axis != d || node == of || (found && *found != node)) return {};
    found = node;
  }
  if (!found) return {};
  const node_def& from = g.nodes[*found];
  const op_role role = from.op->role;
  if (role == op_role::variable || role == op_role::read || !(from.outputs[0].shape == before))
    return {};
  return found;
}

/// Extents that follow from better known ones.
void infer_again(graph_def& g) {
  std::vector<tensor_type> in, out;
  for (auto& n : g.nodes) {
    if (n.inputs.empty() || n.outputs.empty()) continue;
    in.clear();
    for (auto e : n.inputs) in.push_back(g.nodes[e.node].outputs[e.port]);
    try {
      infer_types(*n.op, {in, n.attributes}, out);
    } catch (const error& e) {
      throw e.with_node(n.name, n.location);
    }
    bool better = false;
    for (std::size_t o = 0; o < out.size(); ++o) {
      const dims& known = n.outputs[o].shape;
      for (int d = 0; d < known.rank(); ++d)
        if (out[o].shape[d] == dyn) out[o].shape[d] = known[d];
      better = better || !(out[o].shape == known);
    }
    if (better) n.outputs = out;
  }
}

}  // namespace

void raise_checks(graph_def& g, std::span<edge_def> fetches) {
  if (std::ranges::none_of(g.nodes, is_check)) return;
  const extent_symbols extents(g);
  std::map<std::uint32_t, std::uint32_t> last_check;  // of a value, the last of its new checks
  const auto written = static_cast<std::uint32_t>(g.nodes.size());
  std::vector<std::optional<std::uint32_t>> raised(written);
  for (std::uint32_t i = 0; i < written; ++i) {
    if (!is_check(g.nodes[i])) continue;
    raised[i] = earlier(g, extents, g.nodes[i]);
    if (!raised[i]) continue;
    const std::uint32_t of = *raised[i];
    node_def check = g.nodes[i];
    check.inputs = {{last_check.try_emplace(of, of).first->second, 0}};
    check.requested = g.nodes[of].requested;
    std::vector<tensor_type> in{g.nodes[check.inputs[0].node].outputs[0]}, out;
    try {
      infer_types(*check.op, {in, check.attributes}, out);
    } catch (const error& e) {
      throw e.with_node(check.name, check.location);
    }
    check.outputs = out;
    last_check[of] = static_cast<std::uint32_t>(g.nodes.size());
    g.nodes.push_back(std::move(check));
  }
  if (last_check.empty()) return;
  auto follow = [&](edge_def& e) {
    while (e.node < written && raised[e.node]) e = g.nodes[e.node].inputs[0];
  };
  for (auto& f : fetches)
    if (f.port != run_only) follow(f);
  for (std::uint32_t i = 0; i < written; ++i) {
    if (raised[i]) continue;
    for (auto& e : g.nodes[i].inputs) {
      follow(e);
      if (const auto at = last_check.find(e.node); at != last_check.end() && e.port == 0)
        e.node = at->second;
    }
    for (auto& c : g.nodes[i].controls)
      if (c < written && raised[c]) c = last_check.at(*raised[c]);
  }
  sort(g, fetches);
  prune(g, fetches);
  infer_again(g);
}

}  // namespace deft::ext::plan
