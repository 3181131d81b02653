// SPDX-License-Identifier: Apache-2.0
// deft/plan/fold.ipp: constant folding.
#pragma once
#include <algorithm>
#include <deft/core/failure.hpp>
#include <deft/op/constant.hpp>
#include <deft/plan/fold.hpp>
#include <deft/plan/rewrite.hpp>
#include <iterator>

namespace deft::ext::plan {
namespace {

bool may_fold(const node_def& n) {
  return !n.inputs.empty() && n.outputs.size() == 1 && n.outputs[0].shape.is_static() &&
         !n.op->is(op_traits::stateful) && !n.op->is(op_traits::effect) &&
         n.op->role != op_role::collective && n.op->role != op_role::call;
}

std::size_t bytes_of(const tensor_type& t) {
  return static_cast<std::size_t>(t.shape.elements()) * size_of_dtype(t.type);
}

/// Constants wait for nothing: whoever uses one waits itself for what it was written after. A
/// fetched one keeps its controls, as nobody else may need them.
class constants {
 public:
  constants(graph_def& g, std::span<const edge_def> fetches) : graph_(g), fetched_(g.nodes.size()) {
    for (const edge_def e : fetches) fetched_[e.node] = true;
  }

  void release(std::uint32_t constant) {
    node_numbers& controls = graph_.nodes[constant].controls;
    if (controls.empty() || fetched_[constant]) return;
    std::ranges::sort(controls);
    for (const std::uint32_t user : users_of(constant)) {
      node_numbers& own = graph_.nodes[user].controls;
      std::ranges::sort(own);
      node_numbers both;
      std::ranges::set_union(own, controls, std::back_inserter(both));
      own = std::move(both);
    }
    controls.clear();
  }

 private:
  const node_numbers& users_of(std::uint32_t n) {
    if (users_.empty()) {
      users_.resize(graph_.nodes.size());
      for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
        for (const edge_def e : graph_.nodes[i].inputs) users_[e.node].push_back(i);
        for (const std::uint32_t c : graph_.nodes[i].controls) users_[c].push_back(i);
      }
    }
    return users_[n];
  }

  graph_def& graph_;
  std::vector<bool> fetched_;
  std::vector<node_numbers> users_;  ///< by inputs and controls, as written
};

}  // namespace

void fold(graph_def& g, std::span<edge_def> fetches, const evaluator& evaluate) {
  constexpr std::size_t always = 64 << 10;
  bool folded = false;
  constants all(g, fetches);
  std::vector<any_array> inputs;
  for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
    node_def& n = g.nodes[i];
    if (n.op->role == op_role::constant) all.release(i);
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
    const auto failure = failure_of([&] {  // also one that is not an error, as bad_alloc
      if (n.op->role == op_role::alias)
        value.emplace_back(n.outputs[0].type, n.outputs[0].shape, inputs[0].storage());
      else
        value = evaluate(n, inputs);
    });
    if (failure) throw failure->with_node(n.name, n.location);
    if (value.empty()) continue;
    const program* expression = program_in(n.attributes);
    n.written = expression ? expression->code.back().op : n.op;
    n.op = &record_of<op::constant>;
    n.inputs.clear();
    n.attributes = encode(op::constant{std::move(value[0])});
    all.release(i);
    folded = true;
  }
  if (folded) prune(g, fetches);
}

}  // namespace deft::ext::plan
