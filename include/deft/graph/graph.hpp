// SPDX-License-Identifier: Apache-2.0
// deft/graph/graph.hpp: a graph that expressions are written into: hash-consing, names, variables.
#pragma once
#include <deft/core/place.hpp>
#include <deft/device/scope.hpp>
#include <deft/graph/node.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace deft {

/// What is asked of graph::add.
struct node_request {
  const op_def* def = nullptr;
  attr_list attributes;
  std::span<const output> inputs;
  source_place place;
  const scope_ref* scope = nullptr;         ///< nullptr: the thread's current scope
  std::string name;                         ///< own name; empty: from the operation
  std::unique_ptr<variable_info> variable;  ///< for variables
  std::optional<placement> device;          ///< overrides the scopes' request
  node_ref keeps;                           ///< kept alive by the node: what it updates
};

/// A handle to a graph. Nodes live as long as someone holds them; the graph only knows them.
/// Building from many threads is safe.
class graph {
 public:
  graph();

  /// The node for `r`: the one there is if the operation is pure and was written before with the
  /// same inputs, attributes, placement and control dependencies; else a new one, checked by its
  /// shape rule. Throws invalid_argument with the node's place; also for an input or a control
  /// dependency of another graph.
  node_ref add(node_request&& r);

  /// Number of live nodes.
  std::size_t size() const;
  /// Variables alive, in the order in which they were made.
  std::vector<node_ref> variables() const;
  /// The live variable of that name, or empty.
  node_ref find_variable(std::string_view name) const;
  /// A live node by name or alias, or empty.
  node_ref find(std::string_view name) const;
  /// Adds an alias. Throws already_exists if it is taken.
  void alias(const node_ref& n, const std::string& name);

  /// Seed of the random operations written from now on.
  void set_seed(std::uint64_t seed);
  std::uint64_t seed() const;
  /// Number of the next random operation: part of its key.
  std::uint64_t next_random();
  /// Number of the next session that is opened on it: part of its random stream.
  std::uint64_t next_session();

  /// The graph this node was written into.
  static graph of(const node& n);

  friend bool operator==(const graph& a, const graph& b) { return a.state_ == b.state_; }

 private:
  explicit graph(std::shared_ptr<graph_state> s) : state_(std::move(s)) {}
  std::shared_ptr<graph_state> state_;
};

/// The thread's graph, else the process's.
graph& current_graph();

/// Makes a graph the thread's current one until the scope ends.
class [[nodiscard]] graph_scope {
 public:
  explicit graph_scope(graph g);
  ~graph_scope();
  graph_scope(const graph_scope&) = delete;

 private:
  graph mine_;
  graph* outer_;
};
inline graph_scope as_default(graph g) { return graph_scope(std::move(g)); }

/// While it lives, nodes that this thread writes have `place` as their source location: for what
/// the library writes on behalf of a user's line. One that is not known changes nothing.
class [[nodiscard]] place_scope {
 public:
  explicit place_scope(source_place place);
  ~place_scope();
  place_scope(const place_scope&) = delete;

 private:
  source_place mine_;
  const source_place* outer_;
};

/// Seeds the current graph's random operations.
void set_seed(std::uint64_t seed);

/// What is written until the scope ends runs after `nodes`.
class [[nodiscard]] control_scope : public scope {
 public:
  explicit control_scope(std::vector<node_ref> nodes);
};

/// The control dependencies that a scope carries; empty if none.
std::span<const node_ref> controls_of(const scope_ref& s);

}  // namespace deft
