// SPDX-License-Identifier: Apache-2.0
// deft/op/plan/unfuse.ipp: fused nodes taken apart.
#pragma once
#include <algorithm>
#include <deft/expr/lower.hpp>
#include <deft/op/cast.hpp>
#include <deft/op/constant.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/op/plan/unfuse.hpp>
#include <unordered_set>

namespace deft::ext::plan {

bool is_fused(const node& n) {
  const program* p = program_in(n.attributes);
  return p && !p->is_region();
}

std::vector<output> unfuse(const node_ref& fused) {
  const auto o = decode<op::fused>(fused->attributes);
  const program& p = *o.program;
  graph g = graph::of(*fused);
  auto in_graph = as_default(g);
  // The node's own device and controls stand for the scopes in which it was written.
  scope outside{scope_ref()};
  const auto waits = fused->controls();
  control_scope controls({waits.begin(), waits.end()});
  auto add = [&](const op_def* def, attr_list attributes, std::span<const output> in) {
    return output{g.add({.def = def,
                         .attributes = std::move(attributes),
                         .inputs = in,
                         .location = fused->location(),
                         .device = fused->device()}),
                  0};
  };
  const auto inputs = fused->inputs();
  std::vector<output> values(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < p.immediates.size(); ++i)
    values.push_back(add(&record_of<op::constant>,
                         encode(op::constant{literal_value(p.immediates[i], o.immediates[i])}),
                         {}));
  std::vector<output> made;
  for (const auto& c : p.code) {
    std::vector<output> in;
    for (int a = 0; a < c.count; ++a) in.push_back(values[c.args[a]]);
    made.push_back(
        add(c.op, c.op->attributes.empty() ? attr_list() : encode(op::cast{c.type}), in));
    values.push_back(made.back());
  }
  return made;
}

substitution unfuse_where_needed(std::span<const output> fetches, std::span<const output> feeds) {
  substitution replaced;
  std::unordered_set<const node*> wanted;
  for (const auto& f : fetches) wanted.insert(f.node.get());
  // An expression that is fed means its value wherever that is written: its last primitive is what
  // other fused nodes have inside.
  for (const auto& f : feeds) {
    wanted.insert(f.node.get());
    if (!is_fused(*f.node) || replaced.contains(f.node.get())) continue;
    output last = unfuse(f.node).back();
    wanted.insert(last.node.get());
    replaced.emplace(f.node.get(), std::move(last));
  }

  std::unordered_set<const node*> reached;
  std::vector<node_ref> stack, fused;
  auto visit = [&](const node_ref& n) {
    if (reached.insert(n.get()).second) stack.push_back(n);
  };
  for (const auto& f : fetches) visit(f.node);
  while (!stack.empty()) {
    node_ref n = std::move(stack.back());
    stack.pop_back();
    if (is_fused(*n) && !replaced.contains(n.get())) fused.push_back(n);
    for (const auto& i : n->inputs()) visit(i.node);
    for (const auto& c : n->controls()) visit(c);
  }
  for (const auto& n : fused) {
    std::vector<output> inside = unfuse(n);
    bool needed =
        std::ranges::any_of(inside, [&](const output& o) { return wanted.contains(o.node.get()); });
    if (needed) replaced.emplace(n.get(), inside.back());
  }
  return replaced;
}

}  // namespace deft::ext::plan
