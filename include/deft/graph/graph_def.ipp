// SPDX-License-Identifier: Apache-2.0
// deft/graph/graph_def.ipp: flattening, checking and drawing graphs.
#pragma once
#include <boost/unordered/unordered_flat_map.hpp>
#include <deft/graph/function.hpp>
#include <deft/graph/graph_def.hpp>
#include <map>
#include <set>

namespace deft::ext {
namespace {

/// Depth-first traversal with an explicit stack: nodes come after their inputs.
class flattener {
 public:
  flattener(std::span<const output> fetches, std::span<const output> feeds,
            const substitution& replace)
      : replace_(replace) {
    flat_.feeds.resize(feeds.size());
    for (const auto& f : feeds) feeds_.push_back(in_place_of(f));
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      const node& n = *feeds_[i].node;
      fed_nodes_.insert({&n, i});
      if (n.def->role == op_role::variable)
        fed_variables_.emplace(n.def->resources(n.attributes).front().key, i);
    }
    for (const auto& f : fetches) visit(fetched(f).node.get(), fetched(f).port);
    for (const auto& f : fetches) {
      flat_.fetches.push_back(number(fetched(f)));
      if (f.port == run_only) flat_.fetches.back().port = run_only;
    }
    validate(flat_.graph, flat_.fetches);
    for (std::size_t i = 0; i < feeds.size(); ++i)
      if (!reached_.contains({feeds_[i].node.get(), feeds_[i].port}))
        throw error(errc::invalid_argument, error_reason::not_needed,
                    "no fetch needs the tensor that is fed", name_of(*feeds[i].node),
                    feeds[i].node->location());
  }
  flat_graph take() { return std::move(flat_); }

 private:
  struct frame {
    node* n;
    std::size_t next;  ///< input, then control
  };

  const output& in_place_of(const output& o) const {
    if (replace_.empty()) return o;
    auto at = replace_.find(o.node.get());
    return at == replace_.end() ? o : at->second;
  }

  /// Adds what a fetch needs; an operation whose value is fed is not run.
  output fetched(const output& f) const {
    output o = in_place_of(f);
    if (o.port == run_only && feed_of(o.node.get(), 0) < feeds_.size()) o.port = 0;
    return o;
  }

  /// Adds what a control dependency waits for; a node whose first output is fed is not run.
  output control(const node_ref& n) const { return in_place_of({n, 0}); }

  std::size_t feed_of(const node* n, std::uint32_t port) const {
    auto [begin, end] = fed_nodes_.equal_range(n);
    for (auto i = begin; i != end; ++i)
      if (feeds_[i->second].port == port) return i->second;
    // A fed variable replaces all reads, including those under control dependencies.
    if (!fed_variables_.empty() && n->def->role == op_role::read)
      if (auto at = fed_variables_.find(n->def->resources(n->attributes).front().key);
          at != fed_variables_.end())
        return at->second;
    return feeds_.size();
  }

  /// Whether the value is already added, or replaced by a feed.
  bool ready(node* n, std::uint32_t port) {
    if (!fed_nodes_.empty()) {
      std::size_t feed = feed_of(n, port);
      if (feed < feeds_.size()) {
        if (reached_.insert({feeds_[feed].node.get(), feeds_[feed].port}).second) add_feed(feed);
        return true;
      }
    }
    return numbers_.contains(n);
  }

  void visit(node* n, std::uint32_t port) {
    if (ready(n, port)) return;
    std::vector<frame> stack{{n, 0}};
    while (!stack.empty()) {
      frame& f = stack.back();
      std::size_t inputs = f.n->input_count;
      if (f.next < inputs) {
        const output& i = in_place_of(f.n->inputs()[f.next++]);
        if (!ready(i.node.get(), i.port)) stack.push_back({i.node.get(), 0});
      } else if (f.next < inputs + f.n->controls().size()) {
        const output c = control(f.n->controls()[f.next++ - inputs]);
        if (!ready(c.node.get(), c.port)) stack.push_back({c.node.get(), 0});
      } else {
        if (!numbers_.contains(f.n)) add(f.n);
        stack.pop_back();
      }
    }
  }

  edge_def number(const output& o) {
    if (!fed_nodes_.empty()) {
      std::size_t feed = feed_of(o.node.get(), o.port);
      if (feed < feeds_.size()) return {flat_.feeds[feed], 0};
    }
    return {numbers_.at(o.node.get()), o.port};
  }

  void add(node* n) {
    if (!fed_variables_.empty() && n->def->role == op_role::call) refuse_fed(*n);
    node_def d;
    d.op = n->def;
    d.attributes = n->attributes;
    for (const auto& i : n->inputs()) d.inputs.push_back(number(in_place_of(i)));
    for (const auto& c : n->controls()) d.controls.push_back(number(control(c)).node);
    d.outputs = n->outputs;
    d.requested = n->device();
    d.name = node_name(node_ref(n));
    d.location = n->location();
    numbers_.emplace(n, static_cast<std::uint32_t>(flat_.graph.nodes.size()));
    flat_.graph.nodes.push_back(std::move(d));
  }

  /// The value of a variable is not fed to functions that read it.
  void refuse_fed(const node& n) const {
    for (const auto& r : resources_of(*n.def, n.attributes))
      if (fed_variables_.contains(r.ref.key))
        throw error(errc::unimplemented,
                    str("[", n.def->name, "] variable \"", r.ref.key.name,
                        "\" is fed, and used in a function: give the function its value"),
                    name_of(n), n.location());
  }

  void add_feed(std::size_t feed) {
    const output& o = feeds_[feed];
    node_def d;
    fed_value value = fed(feed, o.type());
    d.op = value.op;
    d.attributes = std::move(value.attributes);
    d.outputs = {o.type()};
    d.requested = o.node->device();
    d.name = node_name(o.node);
    d.location = o.node->location();
    flat_.feeds[feed] = static_cast<std::uint32_t>(flat_.graph.nodes.size());
    flat_.graph.nodes.push_back(std::move(d));
  }

  std::vector<output> feeds_;  ///< after substitution
  const substitution& replace_;
  flat_graph flat_;
  boost::unordered_flat_map<const node*, std::uint32_t> numbers_;
  std::multimap<const node*, std::size_t> fed_nodes_;
  std::map<resource_key, std::size_t> fed_variables_;
  std::set<std::pair<node*, std::uint32_t>> reached_;
};

}  // namespace

const std::string& node_name::str() const {
  static const auto& nothing = *new std::string;
  return origin_ ? name_of(*origin_) : text_ ? *text_ : nothing;
}

fed_value fed(std::size_t number, const tensor_type& t) {
  return {find_op("feed"),
          {static_cast<std::int64_t>(number), static_cast<std::int64_t>(t.type),
           integers(t.shape.begin(), t.shape.end())}};
}

std::string_view written_op(const node_def& n) {
  if (const program* p = program_in(n.attributes)) return p->code.back().op->name;
  return n.written ? n.written->name : n.op->name;
}

void validate(const graph_def& g, std::span<const edge_def> fetches) {
  for (const auto& f : fetches) {
    if (f.node >= g.nodes.size())
      fail(errc::invalid_argument, "a fetch names a node that does not exist");
    if (f.port != run_only && f.port >= g.nodes[f.node].outputs.size())
      fail(errc::invalid_argument, "a fetch names a value that does not exist");
  }
}

flat_graph flatten(std::span<const output> fetches, std::span<const output> feeds,
                   const substitution& replace) {
  return flattener(fetches, feeds, replace).take();
}

void validate(const graph_def& g) {
  std::vector<tensor_type> in, out;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const node_def& n = g.nodes[i];
    try {
      if (!n.op) fail(errc::invalid_argument, "a node without an operation");
      in.clear();
      for (auto e : n.inputs) {
        if (e.node >= i)
          fail(errc::invalid_argument, "[", n.op->name, "] input ", e.node, " comes after its use");
        const auto& from = g.nodes[e.node].outputs;
        if (e.port >= from.size())
          fail(errc::invalid_argument, "[", n.op->name, "] node ", e.node, " has no output ",
               e.port);
        in.push_back(from[e.port]);
      }
      for (auto c : n.controls)
        if (c >= i)
          fail(errc::invalid_argument, "[", n.op->name, "] control ", c, " comes after its use");
      each_function(n.attributes, [](const function_def& f) { validate(f); });
      infer_types(*n.op, {in, n.attributes}, out);
      if (out.size() != n.outputs.size())
        fail(errc::invalid_argument, "[", n.op->name, "] has ", out.size(), " outputs, not ",
             n.outputs.size());
      for (std::size_t o = 0; o < out.size(); ++o)
        if (out[o].type != n.outputs[o].type || !may_equal(out[o].shape, n.outputs[o].shape))
          fail(errc::invalid_argument, "[", n.op->name, "] output ", o, " is ", out[o], ", not ",
               n.outputs[o]);
    } catch (const error& e) {
      throw e.with_node(n.name, n.location);
    }
  }
}

}  // namespace deft::ext
