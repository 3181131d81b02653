// SPDX-License-Identifier: Apache-2.0
// deft/plan/fuse.ipp: fusion found at run time.
#pragma once
#include <algorithm>
#include <deft/op/constant.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/plan/fuse.hpp>
#include <deft/plan/rewrite.hpp>
#include <set>
#include <unordered_map>

namespace deft::plan {
namespace {

bool fusible(const node_def& n) { return n.op->is(op_traits::elementwise) && n.controls.empty(); }

/// A literal in the making: a constant of rank 0.
bool is_literal(const node_def& n) {
  return n.op->role == op_role::constant && n.controls.empty() && n.outputs[0].shape.rank() == 0;
}

class fuser {
 public:
  fuser(graph_def& g, std::span<edge_def> fetches, const std::function<bool(placement)>& can_run)
      : graph_(g), can_run_(can_run), users_(g.nodes.size()) {
    for (std::uint32_t i = 0; i < g.nodes.size(); ++i) {
      for (auto e : g.nodes[i].inputs) users_[e.node].push_back(i);
      // Control dependencies and fetches pin a node as it is.
      for (auto c : g.nodes[i].controls) users_[c].push_back(pinned);
    }
    for (const auto& f : fetches) users_[f.node].push_back(pinned);
  }

  bool run() {
    bool changed = false;
    std::vector<bool> taken(graph_.nodes.size());
    for (std::uint32_t root = static_cast<std::uint32_t>(graph_.nodes.size()); root-- > 0;) {
      if (taken[root] || !fusible(graph_.nodes[root])) continue;
      if (can_run_ && !can_run_(graph_.nodes[root].device)) continue;
      std::set<std::uint32_t> group = gather(root);
      bool literals = std::ranges::any_of(
          graph_.nodes[root].inputs, [&](edge_def e) { return is_literal(graph_.nodes[e.node]); });
      if (group.size() == 1 && !literals) continue;
      for (auto n : group) taken[n] = true;
      replace(root, group);
      changed = true;
    }
    return changed;
  }

 private:
  static constexpr std::uint32_t pinned = ~std::uint32_t{0};

  std::set<std::uint32_t> gather(std::uint32_t root) const {
    const node_def& r = graph_.nodes[root];
    std::set<std::uint32_t> group{root};
    std::set<std::uint32_t, std::greater<>> candidates;
    auto offer = [&](const node_def& n) {
      for (auto e : n.inputs) candidates.insert(e.node);
    };
    offer(r);
    // The largest number first: all users of a node have been decided before it is.
    while (!candidates.empty() && group.size() < max_fused_operations) {
      std::uint32_t i = *candidates.begin();
      candidates.erase(candidates.begin());
      const node_def& n = graph_.nodes[i];
      if (!fusible(n) || n.device != r.device || !(n.outputs[0].shape == r.outputs[0].shape))
        continue;
      if (!std::ranges::all_of(users_[i], [&](std::uint32_t u) { return group.contains(u); }))
        continue;
      group.insert(i);
      offer(n);
    }
    return group;
  }

  /// Numbers as describe() in expr/lower.hpp does, so that a region which the user wrote elsewhere
  /// as one expression finds its compiled kernel.
  void replace(std::uint32_t root, const std::set<std::uint32_t>& group) {
    enum class kind { input, immediate, result };
    struct value {
      kind k;
      std::uint16_t number;
    };
    auto p = std::make_shared<program>();
    integers immediates;
    std::vector<edge_def> inputs;
    std::vector<std::vector<value>> args;  // of each instruction
    std::unordered_map<std::uint32_t, std::uint16_t> done;
    struct frame {
      std::uint32_t node;
      std::vector<value> args;
    };
    std::vector<frame> stack{{root, {}}};
    while (!stack.empty()) {
      frame& f = stack.back();
      const node_def& n = graph_.nodes[f.node];
      if (f.args.size() < n.inputs.size()) {
        edge_def e = n.inputs[f.args.size()];
        const node_def& from = graph_.nodes[e.node];
        if (auto at = done.find(e.node); at != done.end()) {
          f.args.push_back({kind::result, at->second});
        } else if (group.contains(e.node)) {
          stack.push_back({e.node, {}});
        } else if (is_literal(from)) {
          const any_array a = decode<op::constant>(from.attributes).value;
          immediates.push_back(
              visit_dtype(a.type(), [&]<class T>() { return to_immediate(*a.data<T>()); }));
          p->immediates.push_back(a.type());
          f.args.push_back({kind::immediate, static_cast<std::uint16_t>(immediates.size() - 1)});
        } else {
          inputs.push_back(e);
          p->inputs.push_back(from.outputs[e.port].type);
          f.args.push_back({kind::input, static_cast<std::uint16_t>(inputs.size() - 1)});
        }
        continue;
      }
      instruction c;
      c.op = n.op;
      c.type = n.outputs[0].type;
      c.count = static_cast<std::uint8_t>(f.args.size());
      p->code.push_back(c);
      args.push_back(std::move(f.args));
      done.emplace(f.node, static_cast<std::uint16_t>(p->code.size() - 1));
      stack.pop_back();
    }
    for (std::size_t i = 0; i < args.size(); ++i)
      for (std::size_t a = 0; a < args[i].size(); ++a) {
        std::size_t first = args[i][a].k == kind::input       ? 0
                            : args[i][a].k == kind::immediate ? inputs.size()
                                                              : inputs.size() + immediates.size();
        p->code[i].args[a] = static_cast<std::uint16_t>(first + args[i][a].number);
      }
    p->seal();
    node_def& r = graph_.nodes[root];
    r.op = &record_of<op::fused>;
    r.inputs = std::move(inputs);
    r.attributes = encode(op::fused{std::move(p), std::move(immediates)});
  }

  graph_def& graph_;
  const std::function<bool(placement)>& can_run_;
  std::vector<std::vector<std::uint32_t>> users_;
};

}  // namespace

void fuse(graph_def& g, std::span<edge_def> fetches,
          const std::function<bool(placement)>& can_run) {
  if (fuser(g, fetches, can_run).run()) prune(g, fetches);
}

}  // namespace deft::plan
