// SPDX-License-Identifier: Apache-2.0
// deft/plan/collectives.ipp: reduce-scatter and all-gather of nodes that each device has.
#pragma once
#include <algorithm>
#include <deft/op/add.hpp>
#include <deft/op/all_reduce.hpp>
#include <deft/op/concat.hpp>
#include <deft/op/constant.hpp>
#include <deft/op/div.hpp>
#include <deft/op/identity.hpp>
#include <deft/op/plan/agree.hpp>
#include <deft/op/reshape.hpp>
#include <deft/op/slice.hpp>
#include <deft/plan/collectives.hpp>
#include <deft/plan/rewrite.hpp>
#include <map>
#include <tuple>

namespace deft::ext::plan {
namespace {

/// The nodes of one collective operation: its result on one device each.
struct collective {
  bool mean = false;
  std::vector<edge_def> operands;
  node_numbers members;
  std::vector<placement> devices;  ///< of the members, each once
};

class collective_expander {
 public:
  explicit collective_expander(graph_def& g) : graph_(g) {}

  /// The order of all nodes after it; empty if there are no collective operations.
  node_numbers run() {
    find();
    if (all_.empty()) return {};
    const auto written = static_cast<std::uint32_t>(graph_.nodes.size());
    std::map<std::uint32_t, const collective*> at;  // the first member: all operands precede it
    for (const auto& c : all_) at[c.members[0]] = &c;
    node_numbers order;
    for (std::uint32_t i = 0; i < written; ++i) {
      if (const auto c = at.find(i); c != at.end()) {
        auto added = static_cast<std::uint32_t>(graph_.nodes.size());
        expand(*c->second);
        for (; added < graph_.nodes.size(); ++added) order.push_back(added);
      }
      order.push_back(i);
    }
    return order;
  }

 private:
  void find() {
    std::map<std::vector<std::uint64_t>, std::size_t> known;
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const node_def& n = graph_.nodes[i];
      if (n.op->role != op_role::collective) continue;
      const bool mean = decode<op::all_reduce>(n.attributes).mean;
      std::vector<std::uint64_t> key{mean};
      for (auto e : std::span(n.inputs).subspan(1))
        key.push_back(std::uint64_t{e.node} << 32 | e.port);
      const auto [number, fresh] = known.try_emplace(std::move(key), all_.size());
      if (fresh) all_.push_back({mean, {n.inputs.begin() + 1, n.inputs.end()}, {}, {}});
      collective& c = all_[number->second];
      c.members.push_back(i);
      if (!std::ranges::count(c.devices, n.device)) c.devices.push_back(n.device);
    }
  }

  tensor_type type_of(edge_def e) const { return graph_.nodes[e.node].outputs[e.port]; }
  placement device_of(edge_def e) const { return graph_.nodes[e.node].device; }

  // Where a library of the devices' own (NCCL) reduces on all of them at once, it would come first.
  void expand(const collective& c) {
    const tensor_type type = graph_.nodes[c.members[0]].outputs[0];
    location_ = graph_.nodes[c.members[0]].location;
    name_ = graph_.nodes[c.members[0]].name.str();
    const bool known =
        std::ranges::all_of(c.operands, [&](edge_def e) { return type_of(e).shape.is_static(); });
    const std::size_t least = c.devices.size() * least_slice;
    if (known && c.devices.size() > 1 &&
        static_cast<std::size_t>(type.shape.elements()) * size_of_dtype(type.type) >= least)
      return in_slices(c, type);
    std::vector<edge_def> operands = c.operands;
    if (!known) operands[0] = append(op::agree(), c.operands, type, c.devices[0]);
    const edge_def reduced = reduce(c, operands, type, c.devices[0]);
    for (auto m : c.members) become(m, op::identity(), reduced);
  }

  void in_slices(const collective& c, const tensor_type& type) {
    const std::int64_t n = type.shape.elements();
    const auto count = static_cast<std::int64_t>(c.devices.size());
    const std::int64_t most = (n + count * 64 - 1) / (count * 64) * 64;  // addresses stay aligned
    std::vector<edge_def> rows, slices;
    for (auto e : c.operands)
      rows.push_back(append(op::reshape{{n}}, {e}, {{n}, type.type}, device_of(e)));
    for (std::int64_t begin = 0, i = 0; i < count; ++i, begin += most) {
      const std::int64_t size = std::clamp<std::int64_t>(n - begin, 0, most);
      const tensor_type part{{size}, type.type};
      std::vector<edge_def> parts;
      for (auto e : rows)
        parts.push_back(append(op::slice{{std::min(begin, n)}, {size}}, {e}, part, device_of(e)));
      slices.push_back(reduce(c, parts, part, c.devices[static_cast<std::size_t>(i)]));
    }
    for (placement d : c.devices) {
      const edge_def whole = append(op::concat{0}, slices, {{n}, type.type}, d);
      for (auto m : c.members)
        if (graph_.nodes[m].device == d) become(m, op::reshape{type.shape}, whole);
    }
  }

  /// The sum or mean of what the operation combines, or of slices of it.
  edge_def reduce(const collective& c, const std::vector<edge_def>& operands,
                  const tensor_type& type, placement d) {
    edge_def sum = operands[0];
    for (auto e : std::span(operands).subspan(1)) sum = append(op::add(), {sum, e}, type, d);
    if (!c.mean) return sum;
    any_array count(type.type, dims{});
    visit_dtype(type.type,
                [&]<class T>() { *count.mutable_data<T>() = static_cast<T>(operands.size()); });
    return append(op::div(), {sum, append(op::constant{count}, {}, {{}, type.type}, d)}, type, d);
  }

  template <class Op>
  edge_def append(const Op& o, std::vector<edge_def> in, const tensor_type& type, placement d) {
    node_def n;
    n.op = &record_of<Op>;
    n.attributes = encode(o);
    n.inputs = std::move(in);
    n.outputs = std::vector{type};
    n.requested = n.device = d;
    n.name = str(name_, "/", Op::name);
    n.location = location_;
    graph_.nodes.push_back(std::move(n));
    return {static_cast<std::uint32_t>(graph_.nodes.size() - 1), 0};
  }
  /// Member `m` is the operation `o` of a value, and keeps its name and its dependencies.
  template <class Op>
  void become(std::uint32_t m, const Op& o, edge_def value) {
    node_def& n = graph_.nodes[m];
    n.written = n.op;
    n.op = &record_of<Op>;
    n.attributes = encode(o);
    n.inputs = {value};
  }

  graph_def& graph_;
  std::vector<collective> all_;
  owned_location location_;  ///< of the operation that is expanded
  std::string name_;
};

}  // namespace

void expand_collectives(graph_def& g, std::span<edge_def> fetches) {
  const node_numbers order = collective_expander(g).run();
  if (!order.empty()) permute(g, order, fetches);
}

}  // namespace deft::ext::plan
