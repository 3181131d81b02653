// SPDX-License-Identifier: Apache-2.0
// deft/graph/graph.hpp: a graph that expressions are written into: hash-consing, names, variables.
#pragma once
#include <deft/core/location.hpp>
#include <deft/device/scope.hpp>
#include <deft/graph/node.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace deft {

class graph;

namespace ext {

class function_body;
/// The graph to which a node is added that uses `n`: the one that this thread writes if that is the
/// body of a function in the graph of `n`, else the graph of `n`.
graph graph_for(const node& n);

/// The argument of graph::add; what is not stated is left out: `g.add({.def = &d, .location = w})`.
struct node_request {
  const op_def* def = nullptr;
  attr_list attributes = {};
  std::span<const output> inputs = {};
  source_location location = {};
  const scope_ref* scope = nullptr;              ///< nullptr: the thread's current scope
  std::string name = {};                         ///< own name; empty: from the operation
  std::unique_ptr<variable_info> variable = {};  ///< for variables
  std::optional<placement> device = {};          ///< overrides the scopes' request
  node_ref keeps = {};                           ///< kept alive by the node: what it updates
};

}  // namespace ext

/// A handle to a graph. The graph does not own its nodes: handles to them keep them alive.
/// Thread-safe.
class graph {
 public:
  graph();

  /// The node for `r`: an existing one if the operation is pure and was written before with the
  /// same inputs, attributes, placement and control dependencies; otherwise a new one, checked by
  /// its shape rule. Throws invalid_argument, with the node's source location, also for an input or
  /// a control dependency of another graph.
  ext::node_ref add(ext::node_request&& r);

  /// Number of live nodes.
  std::size_t size() const;
  /// Live variables, in the order in which they were made.
  std::vector<ext::node_ref> variables() const;
  /// The live variable of that name, or empty.
  ext::node_ref find_variable(std::string_view name) const;
  /// A live node by name or alias, or empty.
  ext::node_ref find(std::string_view name) const;
  /// Adds an alias. Throws already_exists if it is taken.
  void alias(const ext::node_ref& n, const std::string& name);

  /// Adds `o`, an output of the graph, to a collection, under the name scopes `scope` ("a/b/").
  /// What is there already is not added again. Collections keep their nodes alive, until the last
  /// of the graph objects that share this graph is gone, but for those that `of` returned; then
  /// throws failed_precondition.
  void collect(std::string_view collection, std::string_view scope, const ext::output& o);
  /// What was added under `scope` or scopes in it, in that order, each once; "" stands for all.
  std::vector<ext::output> collected(std::string_view collection, std::string_view scope) const;

  /// Sets the seed of the random operations, and of the first values of variables, that are written
  /// from now on, and numbers those operations from 0 again.
  void set_seed(std::uint64_t seed);
  /// What set_seed was given last; 0 at first.
  std::uint64_t seed() const;
  /// Number of the next random operation, which is part of its key.
  std::uint64_t next_random();
  /// Number of the next session opened on the graph, which is part of its random stream.
  std::uint64_t next_session();

  /// The graph this node was written into.
  static graph of(const ext::node& n);

  friend bool operator==(const graph& a, const graph& b) { return a.state_ == b.state_; }

 private:
  friend class ext::function_body;
  friend graph ext::graph_for(const ext::node& n);
  bool is_body_in(const ext::node& n) const;
  explicit graph(std::shared_ptr<ext::graph_state> s) : state_(std::move(s)) {}
  std::shared_ptr<ext::graph_state> state_;
};

/// The graph of the innermost as_default scope of this thread, else the process's graph.
graph& current_graph();

namespace ext {

/// Makes a graph the current one of this thread until the scope ends.
class [[nodiscard]] graph_scope {
 public:
  explicit graph_scope(graph g);
  ~graph_scope();
  graph_scope(const graph_scope&) = delete;

 private:
  graph mine_;
  graph* outer_;
};

}  // namespace ext

/// `auto scope = as_default(g);` writes into `g` until the scope ends, on this thread.
inline ext::graph_scope as_default(graph g) { return ext::graph_scope(std::move(g)); }

namespace ext {

/// While it lives, nodes that this thread writes have `place` as their source location: for
/// nodes that the library adds on behalf of a user's line. An unknown location changes nothing.
class [[nodiscard]] location_scope {
 public:
  explicit location_scope(source_location location);
  ~location_scope();
  location_scope(const location_scope&) = delete;

 private:
  source_location mine_;
  const source_location* outer_;
};

}  // namespace ext

/// Sets the seed of the random operations that are written into the current graph from now on.
void set_seed(std::uint64_t seed);

namespace ext {

/// Nodes written while the scope lives run after `nodes`.
class [[nodiscard]] control_scope : public scope {
 public:
  explicit control_scope(std::vector<node_ref> nodes);
};

/// The control dependencies that a scope carries; empty if none.
std::span<const node_ref> controls_of(const scope_ref& s);

}  // namespace ext

}  // namespace deft
