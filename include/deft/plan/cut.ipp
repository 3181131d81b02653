// SPDX-License-Identifier: Apache-2.0
// deft/plan/cut.ipp: sends, receives and copies.
#pragma once
#include <algorithm>
#include <deft/op/constant.hpp>
#include <deft/op/plan/copy.hpp>
#include <deft/op/plan/recv.hpp>
#include <deft/op/plan/send.hpp>
#include <deft/plan/cut.hpp>
#include <deft/plan/rewrite.hpp>
#include <map>

namespace deft::ext::plan {

placement task_of(const device_name& device) { return intern(device.task_name()); }

namespace {

class cutter {
 public:
  /// `results`: where fetched values are to be; nullptr: where they are.
  cutter(const graph_def& g, std::span<const edge_def> fetches, placement results = nullptr)
      : graph_(g), place_(g.nodes.size()) {
    for (std::uint32_t i = 0; i < g.nodes.size(); ++i) copy_node(i);
    for (std::uint32_t i = 0; i < fetches.size(); ++i) {
      part& p = *place_[fetches[i].node].in;
      edge_def e{place_[fetches[i].node].number, fetches[i].port};
      if (results && e.port != run_only)
        e = on_device(e, g.nodes[fetches[i].node].device, p, results);
      p.fetches.push_back(e);
      p.fetch_numbers.push_back(i);
    }
  }
  std::vector<part> take() {
    std::vector<part> all;
    for (auto& [task, p] : parts_) all.push_back(std::move(p));
    return all;
  }

 private:
  struct location {
    part* in = nullptr;
    std::uint32_t number = 0;
  };

  part& part_of(placement device) {
    auto [known, fresh] = part_of_device_.try_emplace(device, nullptr);
    if (fresh) {
      placement task = task_of(*device);
      known->second = &parts_[to_string(*task)];
      known->second->task = task;
    }
    return *known->second;
  }

  static std::uint32_t append(part& p, node_def n) {
    p.graph.nodes.push_back(std::move(n));
    return static_cast<std::uint32_t>(p.graph.nodes.size() - 1);
  }
  static placement host_of(const part& p) { return intern(ext::host_of(*p.task)); }

  void copy_node(std::uint32_t i) {
    const node_def& from = graph_.nodes[i];
    part& p = part_of(from.device);
    node_def n = from;
    for (auto& e : n.inputs) e = import_value(e, p, from.device);
    n.controls = import_controls(from.controls, p);
    std::uint32_t number = append(p, std::move(n));
    place_[i] = {&p, number};
  }

  /// The value of edge `e` of the whole graph, in part `p` on `device`.
  edge_def import_value(edge_def e, part& p, placement device) {
    const node_def& from = graph_.nodes[e.node];
    location at = place_[e.node];
    if (at.in == &p) return on_device({at.number, e.port}, from.device, p, device);
    auto [arrival, fresh] = received_.try_emplace({e.node, e.port, &p}, edge_def{});
    if (fresh) arrival->second = transfer({at.number, e.port}, from, *at.in, p);
    return on_device(arrival->second, host_of(p), p, device);
  }

  edge_def transfer(edge_def value, const node_def& from, part& sender, part& receiver) {
    std::string key = str(++keys_);
    tensor_type type = sender.graph.nodes[value.node].outputs[value.port];
    node_def send;
    send.op = &record_of<op::send>;
    send.attributes = encode(op::send{key, to_string(*receiver.task)});
    placement device = sender.graph.nodes[value.node].device;
    send.inputs = {on_device(value, device, sender, host_of(sender))};
    send.requested = send.device = host_of(sender);
    send.name = str(from.name, "/send");
    send.location = from.location;
    append(sender, std::move(send));
    node_def recv;
    recv.op = &record_of<op::recv>;
    recv.attributes = encode(op::recv{key, to_string(*sender.task), type.type, type.shape});
    recv.outputs = {type};
    recv.requested = recv.device = host_of(receiver);
    recv.name = str(from.name, "/recv");
    recv.location = from.location;
    return {append(receiver, std::move(recv)), 0};
  }

  edge_def on_device(edge_def value, placement from, part& p, placement to) {
    if (from == to) return value;
    auto [copy, fresh] = copied_.try_emplace({value.node, value.port, &p, to}, edge_def{});
    if (fresh) {
      const node_def& producer = p.graph.nodes[value.node];
      node_def n;
      n.op = &record_of<op::copy>;
      n.attributes = encode(op::copy{to_string(*to)});
      n.inputs = {value};
      n.outputs = {producer.outputs[value.port]};
      n.requested = n.device = to;
      n.name = str(producer.name, "/copy");
      n.location = producer.location;
      copy->second = {append(p, std::move(n)), 0};
    }
    return copy->second;
  }

  /// Of the nodes of another task, one signal says that all have run.
  node_numbers import_controls(const node_numbers& controls, part& p) {
    node_numbers here;
    std::vector<std::pair<part*, node_numbers>> elsewhere;
    for (const std::uint32_t c : controls) {
      const location at = place_[c];
      if (at.in == &p) {
        here.push_back(at.number);
        continue;
      }
      auto there = std::ranges::find(elsewhere, at.in, &std::pair<part*, node_numbers>::first);
      if (there == elsewhere.end()) there = elsewhere.insert(there, {at.in, {}});
      there->second.push_back(c);
    }
    for (auto& [sender, of] : elsewhere) {
      std::ranges::sort(of);
      const auto [signal, fresh] = signals_.try_emplace({of, &p}, 0u);
      if (fresh) signal->second = send_signal(of, *sender, p);
      here.push_back(signal->second);
    }
    return here;
  }
  /// A byte that is sent once the nodes have run.
  std::uint32_t send_signal(const node_numbers& of, part& sender, part& receiver) {
    const node_def& last = graph_.nodes[of.back()];
    node_def byte;
    byte.op = &record_of<op::constant>;
    byte.attributes = encode(op::constant{any_array::scalar<std::uint8_t>(0)});
    byte.outputs = {{dims{}, dtype::uint8}};
    for (const std::uint32_t c : of) byte.controls.push_back(place_[c].number);
    byte.requested = byte.device = host_of(sender);
    byte.name = str(last.name, "/done");
    byte.location = last.location;
    return transfer({append(sender, std::move(byte)), 0}, last, sender, receiver).node;
  }

  const graph_def& graph_;
  std::vector<location> place_;
  std::map<std::string, part> parts_;
  std::map<placement, part*> part_of_device_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, part*>, edge_def> received_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, part*, placement>, edge_def> copied_;
  std::map<std::pair<node_numbers, part*>, std::uint32_t> signals_;
  std::uint64_t keys_ = 0;
};

}  // namespace

std::vector<part> cut(const graph_def& g, std::span<const edge_def> fetches) {
  return cutter(g, fetches).take();
}

part cut_body(const graph_def& g, std::span<const edge_def> fetches, placement results) {
  auto parts = cutter(g, fetches, results).take();
  if (!parts.empty()) return std::move(parts[0]);
  part nothing;
  nothing.task = task_of(*results);
  return nothing;
}

}  // namespace deft::ext::plan
