// SPDX-License-Identifier: Apache-2.0
// deft/plan/plan_shape.ipp: literals that are told apart from the graph, and fed.
#pragma once
#include <deft/core/hash.hpp>
#include <deft/graph/function.hpp>
#include <deft/op/plan/feed.hpp>
#include <deft/op/plan/fused.hpp>
#include <deft/plan/plan_shape.hpp>

namespace deft::ext::plan {
namespace {

/// What a fused node says of its literals, where it stands; null for other nodes, and for those
/// without literals. Looked for by kind: decoding copies, and this is done for every run that
/// plans.
const integers* literals_in(const node_def& n) {
  if (const program* p = program_in(n.attributes); !p || p->is_region()) return nullptr;
  for (const auto& a : n.attributes)
    if (const auto* l = std::get_if<integers>(&a)) return l->empty() ? nullptr : l;
  return nullptr;
}

/// Calls f(node, program, literals) for each fused node that `which` names.
template <class Graph, class F>
void each_chosen(Graph& g, const std::vector<bool>& which, F&& f) {
  std::size_t number = 0;
  for (auto& n : g.nodes)
    if (const integers* literals = literals_in(n))
      if (which[number++]) f(n, *program_in(n.attributes), *literals);
}

/// Appends numbers of one to ten bytes, seven bits in each; longer things after their length.
struct plan_shape_writer {
  std::string& to;

  void number(std::uint64_t v) {
    char digits[10];
    std::size_t n = 0;
    for (; v >= 128; v >>= 7) digits[n++] = static_cast<char>(v | 128);
    digits[n++] = static_cast<char>(v);
    to.append(digits, n);
  }
  /// Small ones of either sign are short.
  void integer(std::int64_t v) {
    number(static_cast<std::uint64_t>(v) << 1 ^ static_cast<std::uint64_t>(v >> 63));
  }
  void pointer(const void* p) { to.append(reinterpret_cast<const char*>(&p), sizeof p); }
  void text(std::string_view s) {
    number(s.size());
    to += s;
  }
  void list(const auto& values) {
    number(static_cast<std::uint64_t>(values.size()));
    for (auto v : values) integer(static_cast<std::int64_t>(v));
  }
  /// Of node `user`.
  void edge(const edge_def& e, std::size_t user) {
    number(user - e.node);
    number(e.port);
  }
  void value(const attr_value& a) {
    if (auto* i = std::get_if<std::int64_t>(&a)) integer(*i);
    if (auto* d = std::get_if<double>(&a)) number(__builtin_bit_cast(std::uint64_t, *d));
    if (auto* s = std::get_if<std::string>(&a)) text(*s);
    if (auto* l = std::get_if<integers>(&a)) list(*l);
    if (auto* l = std::get_if<strings>(&a)) {
      number(l->size());
      for (const auto& s : *l) text(s);
    }
    if (auto* l = std::get_if<tensor_types>(&a)) {
      number(l->size());
      for (const auto& t : *l) {
        number(static_cast<std::uint64_t>(t.type));
        list(t.shape);
      }
    }
  }
};

}  // namespace

std::vector<integers> literals_of(const graph_def& g) {
  std::vector<integers> all;
  for (const auto& n : g.nodes)
    if (const integers* literals = literals_in(n)) all.push_back(*literals);
  return all;
}

plan_shape::plan_shape(const flat_graph& flat) {
  plan_shape_writer to{bytes_};
  placement requested;
  std::string_view file;
  std::uint64_t contents = 0;                          // hashed
  bytes_.reserve(32 * flat.graph.nodes.size() + 128);  // about what is needed
  to.number(flat.graph.nodes.size());
  for (std::size_t i = 0; i < flat.graph.nodes.size(); ++i) {
    const node_def& n = flat.graph.nodes[i];
    to.pointer(n.op);
    const integers* literals = literals_in(n);
    to.number(n.attributes.size());
    for (const auto& a : n.attributes) {
      to.number(a.index());
      if (literals == std::get_if<integers>(&a) && literals) {
        to.number(literals->size());
      } else if (std::holds_alternative<any_array>(a) || std::holds_alternative<program_ref>(a) ||
                 std::holds_alternative<function_ref>(a)) {
        contents_.push_back(a);
        if (auto* p = std::get_if<program_ref>(&a)) contents = mix(contents, (*p)->hash);
        if (auto* f = std::get_if<function_ref>(&a)) contents = mix(contents, (*f)->hash);
      } else {
        to.value(a);
      }
    }
    // The graph has hashed a constant when it was written, with the nodes that it waits for.
    if (n.op->role == op_role::constant) {
      const node* written = n.name.origin();
      const bool known = written && written->controls().empty();
      contents = mix(contents, known ? written->hash() : hash_attributes(n.attributes));
    }
    // The user's own names, which errors tell.
    if (n.op->role == op_role::placeholder || n.op->role == op_role::feed) to.text(n.name.str());
    to.number(n.inputs.size());
    for (const auto& e : n.inputs) to.edge(e, i);
    to.number(n.controls.size());
    for (auto c : n.controls) to.number(i - c);
    to.number(n.outputs.size());
    for (const auto& t : n.outputs) {
      to.number(static_cast<std::uint64_t>(t.type));
      to.list(t.shape);
    }
    // What is as at the node before takes one byte.
    to.number(n.requested == requested);
    if (n.requested != requested) {
      to.number((requested = n.requested).id());
      requested_.push_back(requested);
    }
    to.number(n.location.file == file);
    if (n.location.file != file) to.text(file = n.location.file);
    to.number(std::uint64_t{n.location.line} << 1 | n.location.approximate);
  }
  to.number(flat.fetches.size());
  for (const auto& e : flat.fetches) to.edge(e, flat.graph.nodes.size());
  to.list(flat.feeds);
  hash_ = mix(contents, hash_bytes(bytes_.data(), bytes_.size()));
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
      d.location = n.location;
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

}  // namespace deft::ext::plan
