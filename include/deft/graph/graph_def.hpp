// SPDX-License-Identifier: Apache-2.0
// deft/graph/graph_def.hpp: a flat copy of a part of a graph, which passes rewrite and messages
// carry.
#pragma once
#include <cstdint>
#include <deft/graph/graph.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace deft {

namespace ext {

/// Output `port` of node number `node`.
struct edge_def {
  std::uint32_t node = 0;
  std::uint32_t port = 0;
  friend bool operator==(const edge_def&, const edge_def&) = default;
};

/// The port of a fetch without a value: its node is only run.
inline constexpr std::uint32_t run_only = ~std::uint32_t{0};

/// The name of a node, computed only when it is read.
class node_name {
 public:
  node_name() = default;
  node_name(std::string text) {  // NOLINT: implicit on purpose
    if (!text.empty()) text_ = shared_ref<std::string>::make(std::move(text));
  }
  node_name(const char* text) : node_name(std::string(text)) {}  // NOLINT: likewise
  explicit node_name(node_ref origin) : origin_(std::move(origin)) {}

  const std::string& str() const;
  operator const std::string&() const { return str(); }  // NOLINT: likewise
  /// The node that was copied; null if it is not in this process.
  const node* origin() const { return origin_.get(); }
  friend bool operator==(const node_name& a, std::string_view b) { return a.str() == b; }
  friend const std::string& to_string(const node_name& n) { return n.str(); }

 private:
  node_ref origin_;
  shared_ref<std::string> text_;
};

/// One node, by value.
struct node_def {
  const op_def* op = nullptr;
  attr_list attributes;
  std::vector<edge_def> inputs;
  std::vector<std::uint32_t> controls;
  type_list outputs;
  placement requested;  ///< as written
  placement device;     ///< full name, once placed
  node_name name;
  owned_location location;
  const op_def* written = nullptr;  ///< what folding replaced by a constant; not sent
};

/// The operation as the user wrote it: the last one of a fused node, the original one of a folded
/// node.
std::string_view written_op(const node_def& n);

}  // namespace ext

/// Nodes in topological order.
struct graph_def {
  std::vector<ext::node_def> nodes;
};

namespace ext {

/// Checks that a graph is sound: every node's inputs and controls come before it, ports
/// exist, arity, attributes and dtypes satisfy the operation, and the outputs are what its shape
/// rule gives (declared extents may be known better). Throws invalid_argument that names the node.
void validate(const graph_def& g);
/// Checks that `fetches` are values or nodes of `g`. Throws invalid_argument.
void validate(const graph_def& g, std::span<const edge_def> fetches);

/// What stands for value `number` of those that a run, or the call of a function, is given.
struct fed_value {
  const op_def* op;
  attr_list attributes;
};
fed_value fed(std::size_t number, const tensor_type& t);

/// The result of flatten: the nodes, and how to find fetches and feeds.
struct flat_graph {
  graph_def graph;
  std::vector<edge_def> fetches;     ///< in the order requested
  std::vector<std::uint32_t> feeds;  ///< nodes that stand for feeds, in the order given
};

/// What replaces some nodes' first output, feeds and control dependencies included.
using substitution = std::unordered_map<const node*, output>;

/// Copies what `fetches` need, after substitution. A feed replaces its output by a `feed` node
/// without inputs, and so prunes the nodes that computed it, for control dependencies too. Throws
/// invalid_argument, with the name, for a feed that nothing needs.
flat_graph flatten(std::span<const output> fetches, std::span<const output> feeds,
                   const substitution& replace = {});

}  // namespace ext

}  // namespace deft
