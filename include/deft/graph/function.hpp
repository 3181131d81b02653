// SPDX-License-Identifier: Apache-2.0
// deft/graph/function.hpp: functions as attributes of nodes: written as graphs of their own, which
// capture what they use of the graphs around them; and how an operation calls them.
#pragma once
#include <algorithm>
#include <deft/core/feed_ref.hpp>
#include <deft/core/location.hpp>
#include <deft/graph/graph_def.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace deft::ext {

/// A resource that a function uses, and whether it changes the resource's value.
struct function_resource {
  resource_ref ref;
  bool updated = false;
};

/// A body, which computes results from parameters. Immutable once it is sealed.
struct function_def {
  std::string name;  ///< for messages: "body"
  /// Its nodes of role `feed` are the parameters that it uses, by number.
  graph_def body;
  std::vector<tensor_type> parameters;
  /// The values, then nodes that are only run, with the port run_only.
  std::vector<edge_def> results;
  /// The number of the node that calls it among what draws random numbers in its graph, so that
  /// each call draws others. 0 if it draws none.
  std::uint64_t call = 0;

  // Computed by `seal`, not sent.
  std::uint64_t hash = 0;
  /// Of its nodes, and of the functions among their attributes: stateful, effect, waits.
  op_traits traits = op_traits::none;
  std::vector<function_resource> resources;  ///< by key, each once

  void seal();
  std::size_t values() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(results, [](const edge_def& e) { return e.port != run_only; }));
  }
};

/// Checks a function: its body as a graph, its parameters and results. Throws invalid_argument with
/// the node.
void validate(const function_def& f);

/// The types of the values of `f`, for the shape rule of the operation that calls it.
/// Throws invalid_argument, in the name of `op`, unless `arguments` fit its parameters.
std::vector<tensor_type> result_types(std::string_view op, const function_def& f,
                                      std::span<const tensor_type> arguments);

/// Calls f(const function_def&) for each function among the attributes.
template <class F>
void each_function(std::span<const attr_value> attributes, F&& f) {
  for (const auto& a : attributes)
    if (const auto* function = std::get_if<function_ref>(&a); function && *function) f(**function);
}
/// Whether `test` holds for some node of `g`, or of the functions that it calls.
template <class Test>
bool any_node(const graph_def& g, const Test& test);
/// Whether `test` holds for `n`, or for some node of the functions that it calls.
template <class Test>
bool any_node(const node_def& n, const Test& test) {
  if (test(n)) return true;
  bool found = false;
  each_function(n.attributes, [&](const function_def& f) { found |= any_node(f.body, test); });
  return found;
}
template <class Test>
bool any_node(const graph_def& g, const Test& test) {
  return std::ranges::any_of(g.nodes, [&](const node_def& n) { return any_node(n, test); });
}
/// Calls visit(n) for all nodes of `g`, and those of the functions that they call, innermost first.
template <class F>
void each_node(const graph_def& g, const F& visit) {
  for (const node_def& n : g.nodes) {
    each_function(n.attributes, [&](const function_def& f) { each_node(f.body, visit); });
    visit(n);
  }
}
/// Replaces each function among the attributes by what `change` makes of a copy, sealed again.
template <class F>
void change_functions(attr_list& attributes, F&& change) {
  bool changed = false;
  std::vector<attr_value> values(attributes.begin(), attributes.end());
  for (auto& a : values)
    if (auto* function = std::get_if<function_ref>(&a); function && *function) {
      auto made = std::make_shared<function_def>(**function);
      change(*made);
      made->seal();
      *function = std::move(made);
      changed = true;
    }
  if (changed) attributes = std::move(values);
}

/// How a node may be treated: as its operation, and as the functions that it calls.
op_traits traits_of(const op_def& op, std::span<const attr_value> attributes);
inline op_traits traits_of(const node_def& n) { return traits_of(*n.op, n.attributes); }
inline bool is(const node_def& n, op_traits t) { return is_one_of(traits_of(n), t); }
/// The resources that a node uses, also through the functions that it calls.
std::vector<function_resource> resources_of(const op_def& op,
                                            std::span<const attr_value> attributes);
inline std::vector<function_resource> resources_of(const node_def& n) {
  return resources_of(*n.op, n.attributes);
}

// Writing a function.

/// What has been written: the function, and what its body uses of the graph around it, whose values
/// are its last parameters.
struct written_function {
  function_ref function;
  std::vector<output> captured;
  std::vector<node_ref> controls;  ///< nodes outside that it comes after
};

/// The body of a function while it is written, on one thread. From the constructor until `finish`
/// or the destructor, this thread writes into a graph inside the current one. That graph captures
/// the values that it uses of the graphs around it: they become parameters. A variable of theirs is
/// read, and may be assigned, in the body itself, in the order in which the body is written; an
/// assignment in it is run even if no result needs it.
class function_body {
 public:
  explicit function_body(std::string name);
  ~function_body();
  function_body(const function_body&) = delete;

  /// The next parameter. All come before the first value that is captured.
  output parameter(const tensor_type& t, source_location w = {});
  /// Ends the body. Throws invalid_argument for a result that is not a value of this graph or of
  /// one around it.
  written_function finish(std::span<const output> results);

 private:
  void end();

  const std::string name_;
  graph body_;
  std::optional<graph_scope> current_;
  std::vector<tensor_type> parameters_;
};

// Calling a function.

/// What a call_kernel knows of its node in one run. Values are on the device of the node, and valid
/// until the node is done; those of a function until it is called again.
class call_context {
 public:
  virtual ~call_context() = default;
  virtual std::size_t inputs() const = 0;
  virtual feed_ref input(std::size_t i) const = 0;
  /// How many functions this run of the node has called so far.
  virtual std::uint64_t calls() const = 0;
  /// Value `i` of the function that has ended last.
  virtual feed_ref result(std::size_t i) = 0;
  /// Sets the next argument of the function that is to be called.
  virtual void argument(feed_ref value) = 0;
  /// Sets output `o` of the node.
  virtual void output(std::size_t o, feed_ref value) = 0;
  /// A copy on the host, of an input or a result.
  virtual any_array on_host(const feed_ref& value) = 0;
};

/// How a node of the role `call` uses its functions: which it calls, and with what. One serves all
/// runs of a part.
class call_kernel {
 public:
  virtual ~call_kernel() = default;
  /// Called at first, and again whenever a function has ended. Either sets the arguments of a
  /// function, of which it returns the number among those of the node, or sets the outputs and
  /// returns `done`.
  virtual std::size_t next(call_context& c) const = 0;

  static constexpr std::size_t done = ~std::size_t{0};
};
using call_kernel_ptr = std::unique_ptr<call_kernel>;

}  // namespace deft::ext
