// SPDX-License-Identifier: Apache-2.0
// deft/plan/fold.ipp: constant folding.
#pragma once
#include <algorithm>
#include <deft/op/constant.hpp>
#include <deft/plan/fold.hpp>
#include <deft/plan/rewrite.hpp>

namespace deft::plan {
namespace {

bool may_fold(const node_def& n) {
  return !n.inputs.empty() && n.controls.empty() && n.outputs.size() == 1 &&
         n.outputs[0].shape.is_static() && !n.op->is(op_traits::stateful) &&
         !n.op->is(op_traits::effect) && n.op->role != op_role::collective;
}

std::size_t bytes_of(const tensor_type& t) {
  return static_cast<std::size_t>(t.shape.elements()) * size_of_dtype(t.type);
}

}  // namespace

void fold(graph_def& g, std::span<edge_def> fetches, const evaluator& evaluate) {
  constexpr std::size_t always = 64 << 10;
  bool folded = false;
  std::vector<any_array> inputs;
  for (auto& n : g.nodes) {
    if (!may_fold(n)) continue;
    inputs.clear();
    std::size_t bytes = 0;
    for (auto e : n.inputs) {
      const node_def& from = g.nodes[e.node];
      // One that waits for others brings their effects along.
      if (from.op->role != op_role::constant || !from.controls.empty()) break;
      inputs.push_back(decode<op::constant>(from.attributes).value);
      bytes += inputs.back().bytes();
    }
    if (inputs.size() < n.inputs.size() || bytes_of(n.outputs[0]) > std::max(always, bytes))
      continue;
    std::vector<any_array> value;
    try {
      if (n.op->role == op_role::alias)
        value.emplace_back(n.outputs[0].type, n.outputs[0].shape, inputs[0].storage());
      else
        value = evaluate(n, inputs);
    } catch (const error& e) {
      throw error(e.code(), e.message(), n.name, n.place);
    }
    if (value.empty()) continue;
    const program* expression = program_in(n.attributes);
    n.written = expression ? expression->code.back().op : n.op;
    n.op = &record_of<op::constant>;
    n.inputs.clear();
    n.attributes = encode(op::constant{std::move(value[0])});
    folded = true;
  }
  if (folded) prune(g, fetches);
}

}  // namespace deft::plan
