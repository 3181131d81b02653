// SPDX-License-Identifier: Apache-2.0
// deft/plan/literals.ipp: literals that are told apart from the graph, and fed.
#pragma once
#include <deft/core/hash.hpp>
#include <deft/op/placeholder.hpp>
#include <deft/op/plan/feed.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/plan/literals.hpp>

namespace deft::plan {
namespace {

/// The literals of a fused node; nullptr if it has none.
const integers* literals_in(const node_def& n) {
  if (n.op != &record_of<op::fused>) return nullptr;
  const auto& literals = std::get<integers>(n.attributes[1]);
  return literals.empty() ? nullptr : &literals;
}

/// Calls f(node, program, literals) for each fused node that `which` names.
template <class Graph, class F>
void each_chosen(Graph& g, const std::vector<bool>& which, F&& f) {
  std::size_t number = 0;
  for (auto& n : g.nodes)
    if (const integers* literals = literals_in(n))
      if (which[number++]) f(n, *std::get<program_ref>(n.attributes[0]), *literals);
}

}  // namespace

std::vector<integers> literals_of(const graph_def& g) {
  std::vector<integers> all;
  for (const auto& n : g.nodes)
    if (const integers* literals = literals_in(n)) all.push_back(*literals);
  return all;
}

std::uint64_t hash_without_literals(const flat_graph& flat) {
  std::uint64_t h = flat.graph.nodes.size();
  auto add = [&](std::uint64_t v) { h = mix(h, v); };
  auto add_pointer = [&](const void* p) { add(reinterpret_cast<std::uintptr_t>(p)); };
  auto add_edge = [&](const edge_def& e) { add(std::uint64_t{e.node} << 32 | e.port); };
  for (const auto& n : flat.graph.nodes) {
    add_pointer(n.op);
    if (literals_in(n))
      add(std::get<program_ref>(n.attributes[0])->hash);
    else
      add(hash_attributes(n.attributes));
    // The user's own names, which errors tell.
    if (n.op == &record_of<op::placeholder> || n.op == &record_of<op::feed>) add(hash_text(n.name));
    add(n.inputs.size());
    for (const auto& e : n.inputs) add_edge(e);
    add(n.controls.size());
    for (auto c : n.controls) add(c);
    for (const auto& t : n.outputs) {
      add(static_cast<std::uint64_t>(t.type));
      for (auto e : t.shape) add(static_cast<std::uint64_t>(e));
    }
    add_pointer(n.requested);
    add(hash_text(n.place.file));
    add(n.place.line);
  }
  for (const auto& e : flat.fetches) add_edge(e);
  for (auto f : flat.feeds) add(f);
  return h;
}

void feed_literals(flat_graph& flat, const std::vector<bool>& which, std::size_t first) {
  graph_def& g = flat.graph;
  std::vector<node_def> feeds;
  each_chosen(g, which, [&](const node_def& n, const program& p, const integers& literals) {
    for (std::size_t i = 0; i < literals.size(); ++i) {
      node_def d;
      d.op = &record_of<op::feed>;
      d.attributes = encode(
          op::feed{static_cast<std::int64_t>(first + feeds.size()), p.immediates[i], dims{}});
      d.outputs = {{dims{}, p.immediates[i]}};
      d.requested = n.requested;
      d.name = str(n.name, "/literal_", i);
      d.place = n.place;
      feeds.push_back(std::move(d));
    }
  });
  // They come first; all others move up.
  const auto more = static_cast<std::uint32_t>(feeds.size());
  for (auto& n : g.nodes) {
    for (auto& e : n.inputs) e.node += more;
    for (auto& c : n.controls) c += more;
  }
  for (auto& f : flat.fetches) f.node += more;
  for (auto& f : flat.feeds) f += more;
  flat.origin.insert(flat.origin.begin(), more, node_ref());
  std::uint32_t next = 0;
  each_chosen(g, which, [&](node_def& n, const program&, const integers& literals) {
    for (std::size_t i = 0; i < literals.size(); ++i) n.inputs.push_back({next++, 0});
  });
  g.nodes.insert(g.nodes.begin(), std::make_move_iterator(feeds.begin()),
                 std::make_move_iterator(feeds.end()));
}

std::vector<any_array> literal_values(const graph_def& g, const std::vector<bool>& which) {
  std::vector<any_array> values;
  each_chosen(g, which, [&](const node_def&, const program& p, const integers& literals) {
    for (std::size_t i = 0; i < literals.size(); ++i)
      values.push_back(literal_value(p.immediates[i], literals[i]));
  });
  return values;
}

}  // namespace deft::plan
