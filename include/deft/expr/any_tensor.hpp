// SPDX-License-Identifier: Apache-2.0
// deft/expr/any_tensor.hpp: a tensor with a dtype and shape known only at run time.
#pragma once
#include <deft/core/any_array.hpp>
#include <deft/expr/traits.hpp>
#include <deft/graph/graph.hpp>
#include <initializer_list>
#include <vector>

namespace deft {

namespace detail {
/// Throws failed_precondition.
[[noreturn]] void refuse_empty(std::string_view what);
/// The output of a tensor that is declared without a value at `w`, which messages tell.
output declared_empty(source_location w);
/// Where that was; unknown for other empty outputs.
source_location location_of_empty(const output& empty);
/// The first output of a node that was looked up. Throws not_found if it is empty, invalid_argument
/// if it yields no value.
output value_of(const node_ref& n, source_location w);
}  // namespace detail

/// A handle to one output of a node. Operations accept it wherever they accept a `tensor<…>`, and
/// check when the node is made what they check at compile time for a `tensor<…>`.
class any_tensor : public detail::expression_base {
 public:
  /// An empty handle; using it throws failed_precondition.
  any_tensor() = default;
  /// The tensor of a node's output, as handle() yields it.
  explicit any_tensor(ext::output o) : output_(std::move(o)) {}
  /// The value of a node: `any_tensor(g.find("logits"))`. Throws not_found if `n` is empty,
  /// invalid_argument if it is an operation, which yields no value.
  explicit any_tensor(const ext::node_ref& n, ext::source_location w = ext::here());
  /// Any typed expression; an unnamed one is lowered.
  template <ext::typed_expression X, class Kernels = ext::kernels_for<X>>
  any_tensor(const X& x, ext::source_location w = ext::here());  // NOLINT: implicit on purpose

  /// @cond refused
  template <class V>
  requires(!std::convertible_to<const V&, any_tensor>) any_tensor& operator=(const V&) {
    static_assert(detail::takes<any_tensor, V>,
                  "[any_tensor] expects an expression, and got a value: feed(x, value) feeds it");
    return *this;
  }
  /// @endcond

  /// Whether the handle refers to a value: false for one that was never assigned.
  bool valid() const { return static_cast<bool>(output_); }
  /// The node's output, for those who extend the engine. Throws failed_precondition if empty.
  const ext::output& handle() const {
    if (!valid()) detail::refuse_empty("tensor");
    return output_;
  }
  /// As handle(), for callers that report an empty handle themselves.
  const ext::output& unchecked() const { return output_; }
  /// Element type. Throws failed_precondition if empty.
  dtype type() const { return handle().type().type; }
  /// Extents as the graph knows them, with `dyn` where only a run does. Throws as type does; the
  /// reference is valid while the node lives.
  const dims& shape() const { return handle().type().shape; }
  /// Number of axes; 0 for a scalar. Throws as type does.
  int rank() const { return shape().rank(); }

  /// A part of it, as of a tensor<T, E…>.
  template <class... S>
  requires detail::subscripts<S...> any_tensor operator()(const S&... s) const {
    return subscripted(*this, s...);
  }

  /// Whether both handles refer to the same output of the same node; `a == b` compares elements.
  friend bool same(const any_tensor& a, const any_tensor& b) {
    return ext::origin_of(a.output_) == ext::origin_of(b.output_);
  }
  template <ext::typed_expression X>
  friend bool same(const any_tensor& a, const X& b) {
    return same(a, any_tensor(b));
  }
  template <ext::typed_expression X>
  friend bool same(const X& a, const any_tensor& b) {
    return same(any_tensor(a), b);
  }

 private:
  ext::output output_;
};

/// An operation: a node that is fetched in order to run it, without a value. Training
/// steps, initializers and groups are operations: `s.run(initialize_all())`.
class operation : public detail::expression_base {
 public:
  /// An empty handle; using it throws failed_precondition.
  operation() = default;
  /// The operation of a node: `s.run(operation(g.find("train")))`. A node with a value is run, and
  /// its value is not fetched.
  explicit operation(ext::node_ref n) : node_(std::move(n)) {}
  /// Whether the handle refers to a node.
  bool valid() const { return static_cast<bool>(node_); }
  /// The node, for those who extend the engine. Throws failed_precondition if empty.
  const ext::node_ref& handle() const {
    if (!valid()) detail::refuse_empty("operation");
    return node_;
  }

 private:
  ext::node_ref node_;
};

namespace detail {

/// The result of a function after a failed assertion. It converts to any tensor or value, so that
/// the assertion's message is the only error.
struct refused : any_tensor {
  template <class T>
  operator T() const;
  template <class T>
  void operator=(const T&) const;
};

/// Adds a node with one output.
any_tensor add_node(const op_def& def, attr_list attributes, std::span<const output> inputs,
                    source_location w, const scope_ref* s = nullptr);

/// `o` as a tensor of that type, written at `w`. Extents of `type` that `o` has only at run time
/// are checked by each run that uses the tensor. Throws invalid_argument if `o` cannot be of that
/// type.
output as_declared(output o, const tensor_type& type, source_location w);

/// A constant node.
any_tensor add_constant(any_array value, source_location w);

/// Throws failed_precondition: operand `number`, from 1, of an operation is an empty tensor.
[[noreturn]] void refuse_empty_operand(std::string_view op, std::size_t number, source_location w,
                                       const output& empty = {});

/// `v` as dtype `type`. Throws invalid_argument if `type` cannot represent it.
any_array scalar_of(const literal& v, dtype type);
/// An operand whose dtype is known only at run time: a tensor, or a literal.
struct any_argument {
  output tensor;
  literal number{};
  bool is_literal = false;
};
/// Adds the node of an operation. Literals take the dtype of the first tensor from operand number
/// `first_value` on. Throws invalid_argument for one that the dtype cannot represent.
any_tensor add_node(const op_def& def, int first_value, std::span<const any_argument> arguments,
                    source_location w);
/// The same as a constant.
any_tensor literal_like(const literal& v, dtype type, source_location w);

}  // namespace detail

inline any_tensor::any_tensor(const ext::node_ref& n, ext::source_location w)
    : output_(detail::value_of(n, w)) {}

/// The graph that a tensor was written into: `auto scope = as_default(graph_of(t))` makes it the
/// current one on another thread.
inline graph graph_of(const any_tensor& t) { return graph::of(*t.handle().node); }

/// The name of a tensor's node.
inline const std::string& name_of(const any_tensor& t) {
  return name_of(*ext::origin_of(t.handle()).node);
}

}  // namespace deft
